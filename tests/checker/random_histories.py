"""Random kafka histories: of a correct log, and with anything done to them."""

from random import Random

from hypothesis import strategies as st

from runs.history import Keyword, Op, OpType

TICK_NS = 1_000_000
SEND, POLL = Keyword("send"), Keyword("poll")


class CorrectLog:
    """Simulates clients of a correct log, one operation at a time in some order, with crashes."""

    def __init__(self, seed: int, keys: int = 3, workers: int = 3) -> None:
        self.random = Random(seed)
        self.keys = [str(number) for number in range(keys)]
        self.processes = list(range(workers))
        self.log: dict[str, list[tuple[int, int]]] = {key: [] for key in self.keys}
        self.positions: dict[int, dict[str, int]] = {}
        self.ops: list[Op] = []

    def run(self, count: int) -> list[Op]:
        """`count` operations at random, then every worker reads everything."""
        for _ in range(count):
            worker = self.random.randrange(len(self.processes))
            self.random.choice([self.send, self.send, self.poll, self.poll, self.assign])(worker)
            if self.random.random() < 0.1:
                self.crash(worker)
        for worker in range(len(self.processes)):
            self.crash(worker)
            self.assign(worker, rewind=True)
            self.poll(worker)
            self.poll(worker)
        return self.ops

    def send(self, worker: int) -> None:
        key, log = self._log()
        message = len(log) + 1
        offset = (log[-1][0] + self.random.choice([1, 1, 5])) if log else 0
        outcome: OpType = self.random.choice(["ok", "ok", "ok", "info", "fail"])
        if outcome == "ok" or (outcome == "info" and self.random.random() < 0.5):
            log.append((offset, message))
        value = [offset, message] if outcome == "ok" else message
        self._op(worker, outcome, "send", [[SEND, key, message]], [[SEND, key, value]])
        if outcome != "ok":
            log.append((offset + 1, message + 1000))  # so that no message is sent twice
            self._op(
                worker,
                "ok",
                "send",
                [[SEND, key, message + 1000]],
                [[SEND, key, [offset + 1, message + 1000]]],
            )

    def poll(self, worker: int) -> None:
        positions = self.positions.setdefault(self.processes[worker], {})
        answer = {}
        for key, position in positions.items():
            run = [list(pair) for pair in self.log[key] if pair[0] >= position]
            if run:
                answer[key] = run
                positions[key] = run[-1][0] + 1
        self._op(worker, "ok", "poll", [[POLL]], [[POLL, answer]])

    def assign(self, worker: int, rewind: bool = False) -> None:
        keys = self.keys if rewind else self.random.sample(self.keys, 2)
        before = self.positions.get(self.processes[worker], {})
        self.positions[self.processes[worker]] = {key: before.get(key, 0) for key in keys}
        self._op(worker, "ok", "assign", list(keys), list(keys))

    def crash(self, worker: int) -> None:
        self._op(worker, "info", "crash", None, None)
        self.processes[worker] += len(self.processes)

    def _log(self) -> tuple[str, list[tuple[int, int]]]:
        key = self.random.choice(self.keys)
        return key, self.log[key]

    def _op(self, worker: int, outcome: OpType, f: str, asked: object, value: object) -> None:
        lines: tuple[tuple[OpType, object], ...] = (("invoke", asked), (outcome, value))
        for kind, each in lines:
            time_ns = len(self.ops) * TICK_NS
            process = self.processes[worker]
            self.ops.append(Op(len(self.ops), time_ns, kind, process, Keyword(f), each))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.sampled_from(["x", "1", "send"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["0", "1", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
MOPS = st.lists(
    st.tuples(st.just(SEND), JUNK, JUNK).map(list)
    | st.tuples(st.just(POLL), st.dictionaries(st.sampled_from(["0", "1"]), JUNK)).map(list)
    | JUNK,
    max_size=3,
)


@st.composite
def mutated_histories(draw: st.DrawFn) -> list[Op]:
    """A correct history with anything done to it: cut, shuffled, doubled, rewritten with junk."""
    ops = CorrectLog(draw(st.integers(0, 50))).run(draw(st.integers(0, 25)))
    for _ in range(draw(st.integers(1, 8))):
        if not ops:
            break
        at = draw(st.integers(0, len(ops) - 1))
        change = draw(
            st.sampled_from(["cut", "drop", "swap", "repeat", "type", "value", "process"])
        )
        op = ops[at]
        if change == "cut":
            ops = ops[:at]
        elif change == "drop":
            del ops[at]
        elif change == "swap":
            ops[at], ops[-1] = ops[-1], ops[at]
        elif change == "repeat":
            ops.insert(at, op)
        elif change == "type":
            op.type = draw(st.sampled_from(["invoke", "ok", "fail", "info"]))
        elif change == "value":
            op.value = draw(MOPS | JUNK)
        else:
            op.process = draw(st.integers(0, 9) | st.just(Keyword("nemesis")))
    return ops


def broken_log(seed: int, count: int) -> list[Op]:
    """A history in which some polls miss a message or see one twice."""
    random = Random(seed)
    ops = CorrectLog(seed).run(count)
    for op in ops:
        if op.f == "poll" and op.type == "ok":
            for run in op.value[0][1].values():
                if random.random() < 0.2:
                    del run[random.randrange(len(run))]
                elif random.random() < 0.1:
                    run.append(run[0])
    return ops
