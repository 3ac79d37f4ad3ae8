"""The verdict on a lin-kv history: every key by itself, then all together."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runs.history import Op, completions
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Finding, Result, worst
from workloads.lin_kv.linearizability import Blocked, Call, search

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
    result: dict[Keyword, Any] = keywords(
        valid=UNKNOWN if outcome.linearizable is None else outcome.linearizable,
        op_count=len(calls),
        configs_explored=outcome.explored,
    )
    if outcome.blocked:
        result[Keyword("blocked")] = _blocked(history, outcome.blocked)
    return result


def _blocked(history: Sequence[Op], blocked: Blocked) -> dict[Keyword, Any]:
    """The same with the indices of the history, and values as the clients saw them."""
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
        call = Call(invoked, completion.f, _state(completion.f, argument), invoked, known)
        calls.setdefault(name, []).append(call)
    return keys, calls


def _state(f: str, argument: Any) -> Any:
    if f != "cas":
        return _canonical(argument)
    before, after = argument
    return _canonical(before), _canonical(after)


def _canonical(value: Any) -> str:
    """JSON values compare by value, and 1, 1.0 and true are three of them (in Python one)."""
    return json.dumps(value, sort_keys=True)
