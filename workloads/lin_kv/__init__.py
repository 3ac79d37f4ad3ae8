"""lin-kv: a linearizable key-value store, key by key.

    {"type": "read", "key": 0}                        ->  {"type": "read_ok", "value": 3}
    {"type": "write", "key": 0, "value": 3}           ->  {"type": "write_ok"}
    {"type": "cas", "key": 0, "from": 3, "to": 4}     ->  {"type": "cas_ok"}

A write creates the key. Reading a key that does not exist is error 20; so is a cas on it, and a cas that finds
another value than `from` is error 22. Both are definite: nothing happened. A node that cannot tell must say so
with an indefinite error (0 or 13) or not at all; the operation is then `info`, and may have taken effect at any
later time, or never. A read has no effect, so an unknown read simply failed.

In a history an operation's value is `[key, argument]`: `[0, None]` for a read that was invoked,
`[0, 3]` for one that saw 3 and for a write of 3, `[0, [3, 4]]` for a cas from 3 to 4.

The verdict is valid when the history of every key is linearizable: each operation seems to happen in one
instant between its invocation and its completion. Keys are judged one by one, which is enough (linearizability
composes) and keeps each search short. Where a search reaches its bound, that key is `"unknown"`. An invalid key
names the operation at whose completion every possible explanation of the history has ended, what the key could
have held by then, and which operations were under way.

The rules are those of Maelstrom's workload of this name on Jepsen's linearizable register.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any

from runs.history import Keyword, Op, completions, keywords
from workloads.interface import (
    UNKNOWN,
    Draft,
    Finding,
    Judge,
    Result,
    Setting,
    Steps,
    Turn,
    Workload,
    by_history,
    worst,
)
from workloads.lin_kv.linearizability import Blocked, Call, search
from workloads.replies import ANY, Stateless, ask

NONLINEARIZABLE = Keyword("nonlinearizable")
_VALID = Keyword("valid?")
_DID = {"read": "read {}", "write": "wrote {}", "cas": "changed {} to {}"}


def check(history: Sequence[Op]) -> Result:
    """Judge a history.

    The result has `valid?`, `results` (by key: `valid?`, `op-count`, `configs-explored` and, when
    invalid, `blocked`) and `failures`, the keys that are not linearizable. The indices in
    `blocked` are those of the history.
    """
    keys, calls = _calls_by_key(history)
    results = {keys[name]: _judge(history, calls[name]) for name in keys}
    verdicts = [result[_VALID] for result in results.values()]
    failures = [key for key, result in results.items() if result[_VALID] is False]
    return keywords(valid=worst(verdicts), results=results, failures=failures)


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for each key that is not linearizable, with the operations that show it."""
    ops = {op.index: op for op in history}
    return [
        _finding(key, result["results"][key]["blocked"], ops) for key in result.get("failures", ())
    ]


def _judge(history: Sequence[Op], calls: Sequence[Call]) -> dict[Keyword, Any]:
    outcome = search(calls, initial=_canonical(None))
    return keywords(
        valid=UNKNOWN if outcome.linearizable is None else outcome.linearizable,
        op_count=len(calls),
        configs_explored=outcome.explored,
        **({"blocked": _blocked(history, outcome.blocked)} if outcome.blocked else {}),
    )


def _blocked(history: Sequence[Op], blocked: Blocked) -> dict[Keyword, Any]:
    """Translate to indices of the history, and to values as clients saw them."""
    assert blocked.call.returned is not None, "a lost call never has to take effect"
    return keywords(
        op=history[blocked.call.returned].index,
        invoked=history[blocked.call.invoked].index,
        could_hold=[
            [json.loads(str(value)), writer and history[writer.invoked].index]
            for value, writer in blocked.held.items()
        ],
        running=sorted(history[call.invoked].index for call in blocked.running),
    )


def _finding(key: Any, blocked: Mapping[str, Any], ops: Mapping[int, Op]) -> Finding:
    op = ops[blocked["op"]]
    writers = [writer for _, writer in blocked["could-hold"] if writer is not None]
    witness = {*writers, *blocked["running"], blocked["invoked"], blocked["op"]}
    values = " or ".join(_held(value, ops.get(by)) for value, by in blocked["could-hold"])
    sentence = (
        f"Key {json.dumps(key)}: {_did(op)}, but no order of the operations before it explains "
        f"that: by then the key could only hold {values}."
    )
    return Finding(NONLINEARIZABLE, True, 1, sentence, [ops[index] for index in sorted(witness)])


def _held(value: Any, writer: Op | None) -> str:
    if writer is None:
        return "nothing (it was never written)"
    return f"{json.dumps(value)} (process {writer.process}'s {writer.f})"


def _did(op: Op) -> str:
    _, argument = op.value
    values = map(json.dumps, argument if op.f == "cas" else [argument])
    return f"process {op.process} {_DID[op.f].format(*values)}"


def _calls_by_key(history: Sequence[Op]) -> tuple[dict[str, Any], dict[str, list[Call]]]:
    """The keys in the order in which they appear, and the calls on each, both by canonical name."""
    keys: dict[str, Any] = {}
    calls: dict[str, list[Call]] = {}
    pairs = completions(history)
    for invoked, op in enumerate(history):
        if op.type != "invoke" or op.f not in _DID:
            continue
        returned = pairs.get(invoked)
        completion = op if returned is None else history[returned]
        if completion.type == "fail":
            continue
        key, argument = completion.value
        name = _canonical(key)
        keys.setdefault(name, key)
        known = returned if completion.type == "ok" else None
        calls.setdefault(name, []).append(
            Call(invoked, completion.f, _state(completion.f, argument), invoked, known)
        )
    return keys, calls


def _state(f: str, argument: Any) -> Any:
    if f != "cas":
        return _canonical(argument)
    before, after = argument
    return _canonical(before), _canonical(after)


def _canonical(value: Any) -> str:
    """JSON values compare by value, and 1, 1.0 and true are three of them (in Python one)."""
    return json.dumps(value, sort_keys=True)


# ---------------- lin-kv: a linearizable key-value store, key by key.


_PROCESSES_PER_KEY = 20
_ARGUMENTS = {"read": (), "write": ("value",), "cas": ("from", "to")}


def _perform(node: str, op: Op, timeout_ms: int) -> Steps:
    key, argument = op.value
    values = argument if op.f == "cas" else [argument]
    request = {"type": op.f, "key": key, **dict(zip(_ARGUMENTS[op.f], values, strict=False))}
    if op.f == "read":
        return [key, (yield from ask(node, request, timeout_ms, value=ANY))["value"]]
    yield from ask(node, request, timeout_ms)
    return [key, argument]


@dataclass(slots=True)
class _Group:
    size: int
    key: int
    processes: int


class LinKvGenerator:
    """Endless operations for `concurrency` workers on `node_count` nodes.

    Workers are split into groups of twice the node count, and each group works on one key of its own, so that a
    key is contended and its history still short enough to judge. Half of a group reads; the other half writes
    (one in three) or compares-and-sets (two in three), with values 0 to 4, so that a cas often meets the value
    it expects. Unknown outcomes are what makes judging a key expensive, so a key that has met 20 processes is
    left for a fresh one.
    """

    def __init__(self, random: Random, node_count: int, concurrency: int) -> None:
        self._random = random
        self._concurrency = concurrency
        self._group_size = min(2 * node_count, concurrency)
        self._keys = count()
        self._groups = [
            self._fresh(min(self._group_size, concurrency - first))
            for first in range(0, concurrency, self._group_size)
        ]

    def next(self, turn: Turn) -> Draft:
        group = self._group(turn.worker)
        if turn.worker % self._group_size < group.size // 2:
            return Draft("read", [group.key, None])
        if self._random.randrange(3) == 0:
            return Draft("write", [group.key, self._value()])
        return Draft("cas", [group.key, [self._value(), self._value()]])

    def update(self, op: Op) -> None:
        """Count the process that replaces one with an unknown outcome."""
        if op.type != "info" or not isinstance(op.process, int):
            return
        worker = op.process % self._concurrency
        group = self._group(worker)
        group.processes += 1
        if group.processes > max(_PROCESSES_PER_KEY, 2 * group.size):
            self._groups[worker // self._group_size] = self._fresh(group.size)

    def _group(self, worker: int) -> _Group:
        return self._groups[worker // self._group_size]

    def _fresh(self, size: int) -> _Group:
        return _Group(size, key=next(self._keys), processes=size)

    def _value(self) -> int:
        return self._random.randrange(5)


JUDGE = Judge(by_history(check), explain)


def build(setting: Setting) -> Workload:
    """The workload for this run. Clients wait ten mean latencies, and at least a second."""
    timeout_ms = max(1000, 10 * round(setting.options.get("latency_ms", 0)))
    return Workload(
        generator=LinKvGenerator(setting.random("lin-kv"), len(setting.nodes), setting.concurrency),
        open_client=partial(Stateless, perform=partial(_perform, timeout_ms=timeout_ms)),
        judge=JUDGE,
        idempotent=frozenset({"read"}),
        reusable=True,
    )
