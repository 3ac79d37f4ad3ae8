"""What holds of the checker for every history: it answers, and names and holes do not matter to it."""

from random import Random

from history_language import TICK_NS, history
from hypothesis import given
from hypothesis import strategies as st

from bench import edn
from bench.history import Op, edn_line
from bench.keyword import Keyword
from workloads.kafka.checker import check, explain
from workloads.kafka.checker.facts import scalar

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
            step = self.random.choice([self.send, self.send, self.poll, self.poll, self.assign])
            step(worker)
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
        outcome = self.random.choice(["ok", "ok", "ok", "info", "fail"])
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

    def _op(self, worker: int, outcome: str, f: str, asked: object, value: object) -> None:
        for kind, each in (("invoke", asked), (outcome, value)):
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


@given(mutated_histories(), st.booleans(), st.booleans())
def test_answers_whatever_the_history(ops, ww_deps, strict):
    options = {"ww_deps": ww_deps, "strict": strict, "nodes": ["n0", "n1"], "concurrency": 3}
    result = check(ops, options)
    assert result["valid?"] in (True, False, "unknown")
    assert {each.type for each in explain(result, ops)} == set(result["error-types"])
    edn.dumps(result, pretty=True)


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_a_correct_log_is_valid(seed, count):
    ops = CorrectLog(seed).run(count)
    result = check(ops, {"strict": True, "nodes": ["n0", "n1"], "concurrency": 3})
    # The final assignments carry no mark here, so a strict check has nothing to say.
    assert (result["valid?"], result["bad-error-types"]) == ("unknown", ())
    assert check(ops, {})["valid?"] is True


def _renamed(op: Op, name, number) -> Op:
    """`op` with every key through `name` and every offset through `number` (key, offset)."""
    if op.f == "assign":
        value = [name(key) for key in op.value]
    elif op.f == "send":
        ((f, key, sent),) = op.value
        pair = [number(key, sent[0]), sent[1]] if isinstance(sent, list) else sent
        value = [[f, name(key), pair]]
    elif op.f == "poll" and len(op.value[0]) == 2:
        answer = {
            name(key): [[number(key, offset), message] for offset, message in run]
            for key, run in op.value[0][1].items()
        }
        value = [[POLL, answer]]
    else:
        value = op.value
    return Op(op.index, op.time, op.type, op.process, op.f, value, op.extra)


def _broken(seed: int, count: int) -> list[Op]:
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


@given(st.integers(0, 2**32), st.integers(2, 40), st.permutations(["0", "1", "2"]))
def test_names_of_keys_do_not_matter(seed, count, names):
    ops = _broken(seed, count)
    renamed = [_renamed(op, lambda key: names[int(key)], lambda _, offset: offset) for op in ops]
    assert _summary(renamed) == _summary(ops)


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_holes_in_the_offsets_do_not_matter(seed, count):
    ops = _broken(seed, count)
    spread = [_renamed(op, lambda key: key, lambda _, offset: 7 * offset + 3) for op in ops]
    assert _summary(spread) == _summary(ops)


def _summary(ops: list[Op]) -> tuple[object, ...]:
    result = check(ops, {})
    counts = {each: result[each].get("count") for each in result["error-types"]}
    return result["valid?"], counts


def test_the_language_of_histories_says_what_it_means():
    lines = [edn_line(op) for op in history("0 send x=1@0\n1 poll x=1@0 fail\n1 assign x rewind")]
    head = "{:index 1, :time 2000000, :type :ok, :process 0, :f :send, "
    assert lines[1] == head + ':value [[:send "x" [0 1]]]}'
    assert lines[3].endswith(':type :fail, :process 1, :f :poll, :value [[:poll {"x" [[0 1]]}]]}')
    assert lines[5].endswith(':value ["x"], :seek-to-beginning? true}')


def test_messages_are_equal_only_when_they_are_the_same_json():
    values = [1, 1.0, True, "1", "true", "1.0", [1], {"a": 1}, None, '{"a" 1}']
    assert len({scalar(value) for value in values}) == len(values)
    assert scalar({"a": [1, 2]}) == scalar({"a": [1, 2]})
