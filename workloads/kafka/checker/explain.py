"""The checker's findings for a person: for each anomaly type one case, and the operations that show it.

Findings come in the order of cause. What is wrong with the log itself stands first: an offset that is none,
two messages at one offset, a message twice, a message from nowhere. Then comes what is missing in it, then
what readers saw of it, then cycles, which follow from all of these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from runs.edn import dumps
from runs.history import Op
from workloads.interface import Finding
from workloads.kafka.checker.compose import error_count
from workloads.kafka.checker.contents import duplicate_cases
from workloads.kafka.checker.observed import Facts, Key, Message, client_operations, scalar
from workloads.kafka.checker.sentences import sentence
from workloads.kafka.checker.versions import logs

# A cause stands before what follows from it; types that are not named come last, by name.
CAUSES = (
    "malformed-offset",
    "untold-offset",
    "no-writer-of-value",
    "inconsistent-offsets",
    "duplicate",
    "G1a",
    "precommitted-read",
    "int-nonmonotonic-send",
    "nonmonotonic-send",
    "lost-write",
    "int-poll-skip",
    "poll-skip",
    "int-nonmonotonic-poll",
    "nonmonotonic-poll",
    "unreplicated",
    "unseen",
)


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """A finding for each anomaly type in `result` (what `check` returned for `history`), causes first."""
    scene = _Scene(history, repeats="duplicate" in result)
    bad = set(result["bad-error-types"])
    return [
        Finding(
            type=str(anomaly),
            invalidating=anomaly in bad,
            count=error_count(anomaly, result[anomaly]),
            sentence=sentence(anomaly, scene.told(_instance(anomaly, result[anomaly]))),
            witness=scene.witness(anomaly, _instance(anomaly, result[anomaly])),
        )
        for anomaly in sorted(result["error-types"], key=by_cause)
    ]


def by_cause(anomaly: str) -> tuple[int, str]:
    """A sort key for types of anomaly."""
    return (CAUSES.index(anomaly) if anomaly in CAUSES else len(CAUSES), str(anomaly))


def _instance(anomaly: str, error: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first case that results.edn shows."""
    if anomaly == "unseen":
        return error
    return error["errs"][0] if isinstance(error["errs"], tuple) else {}


class _Scene:
    """The history, to pick witnesses from."""

    def __init__(self, history: Sequence[Op], *, repeats: bool) -> None:
        self._history = history
        self._repeats = repeats

    @cached_property
    def _facts(self) -> Facts:
        return Facts(client_operations(self._history))

    @cached_property
    def _by_index(self) -> dict[int, Op]:
        return {op.index: op for op in self._history}

    @cached_property
    def _repeated(self) -> set[tuple[Key, Message]]:
        """The messages that are in the log more than once."""
        known = logs(self._facts) if self._repeats else {}
        return {
            (key, case["value"]) for key, log in known.items() for case in duplicate_cases(key, log)
        }

    def told(self, case: Mapping[str, Any]) -> Mapping[str, Any]:
        """`case` with what else the history says of its messages."""
        messages = dict.fromkeys((*case.get("values", ()), *case.get("skipped", ())))
        repeated = [each for each in messages if (case.get("key"), each) in self._repeated]
        behind = self._behind(case) if case.get("skipped") else None
        return {
            **case,
            **({"repeated": repeated} if repeated else {}),
            **({"behind": behind} if behind is not None else {}),
        }

    def _behind(self, case: Mapping[str, Any]) -> int | None:
        """The offset of the first skipped message, if nobody knew it before the poll that skipped it.

        4.441 s  a poll returns 15 at offset 3 and 16 at offset 5
        4.445 s  the send of 8 is acknowledged, at offset 4
        """
        message = case["skipped"][0]
        last = max(op["index"] for op in case.get("ops") or [case["op"]])
        for transaction in self._facts.transactions:
            for run in (transaction.sends.get(case["key"]), transaction.polls.get(case["key"])):
                if transaction.type == "ok" and run and message in run.messages:
                    offset = run.offsets[run.messages.index(message)]
                    return offset if transaction.op.index > last else None
        return None

    def witness(self, anomaly: str, case: Mapping[str, Any]) -> list[Op]:
        """The operations that show `case`, each once, with nothing in them but what matters."""
        if "steps" in case:
            invocations = [step["b"] for step in case["steps"] if "b" in step]
            named = [self._by_index[op["index"]] for op in (*invocations, *case["cycle"][:-1])]
            wanted = {(step["key"], step["value"]) for step in case["steps"] if "key" in step}
        elif anomaly == "unseen":
            key, messages = next(iter(case["messages"].items()))
            wanted = {(key, messages[0])}
            named = [self._facts.writers[key][messages[0]].op]
        else:
            wanted = {(case["key"], each) for each in _messages(case)} if "key" in case else set()
            named = [*self._named(case), *self._sightings(anomaly, case)]
        unique = {op.index: op for op in named}
        return [_focused(op, wanted) for op in unique.values()]

    def _named(self, case: Mapping[str, Any]) -> Iterator[Op]:
        """The operations that the case itself names."""
        for role in ("op", "writer", "reader", "max-read"):
            if case.get(role):
                yield self._by_index[case[role]["index"]]
        for op in case.get("ops", ()):
            yield self._by_index[op["index"]]

    def _sightings(self, anomaly: str, case: Mapping[str, Any]) -> Iterator[Op]:
        """The operations that first showed what a case without operations says, or what was skipped."""
        if anomaly == "duplicate":
            for offset in case["offsets"]:
                yield from self._first_shown(case["key"], case["value"], offset)
        elif anomaly == "inconsistent-offsets":
            for message in case["values"]:
                yield from self._first_shown(case["key"], message, case["offset"])
        for message in case.get("skipped", ())[:1]:
            yield from self._first_shown(case["key"], message, None)

    def _first_shown(self, key: Key, message: Message, offset: int | None) -> Iterator[Op]:
        for transaction in self._facts.transactions:
            for run in (transaction.sends.get(key), transaction.polls.get(key)):
                pairs = zip(run.offsets, run.messages, strict=True) if run else ()
                if any(each == message and offset in (None, at) for at, each in pairs):
                    yield transaction.op
                    return


def _messages(case: Mapping[str, Any]) -> Iterator[Message]:
    if "value" in case:
        yield case["value"]
    yield from case.get("values", ())
    yield from case.get("skipped", ())[:1]


def _focused(op: Op, wanted: Iterable[tuple[Key, Message]]) -> Op:
    """`op` with only the wanted messages in its polls; whole if it has none of them, but cut short."""
    by_key: dict[Key, set[Message]] = {}
    for key, message in wanted:
        by_key.setdefault(key, set()).add(message)
    if not isinstance(op.value, list):
        return op
    return replace(op, value=[_focused_mop(mop, by_key) for mop in op.value])


def _focused_mop(mop: Any, wanted: Mapping[Key, set[Message]]) -> Any:
    if not (isinstance(mop, list) and len(mop) == 2 and isinstance(mop[1], dict)):
        return mop
    kept = {}
    for key, pairs in mop[1].items():
        messages = wanted.get(scalar(key))
        if messages is not None and isinstance(pairs, list):
            kept[key] = [pair for pair in pairs if _message(pair) in messages] or pairs[-1:]
    return [mop[0], kept]


def _message(pair: Any) -> Message:
    return scalar(pair[1]) if isinstance(pair, list) and len(pair) > 1 else scalar(dumps(None))
