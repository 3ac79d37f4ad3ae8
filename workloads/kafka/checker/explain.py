"""The checker's findings for a person: for each anomaly type one case, and the operations that show it.

Findings come in the order of cause. What is wrong with the log itself stands first: an offset that is none,
two messages at one offset, a message twice, a message from nowhere. Then comes what is missing in it, then
what readers saw of it, then cycles, which follow from all of these.

Sentences say what went wrong in the words of a log's user.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from string import Formatter
from typing import Any

from runs.edn import dumps
from runs.facts import grouped
from runs.history import Op
from workloads.interface import Finding, without
from workloads.kafka.checker.compose import error_count
from workloads.kafka.checker.contents import duplicate_cases
from workloads.kafka.checker.logs import logs
from workloads.kafka.checker.observed import Facts, Key, Message, client_operations, scalar

_SHOWN = 5  # messages named in a sentence
_ROLES = ("op", "writer", "reader", "max-read")  # of the operations that a case names

# The words in braces are those of `_WORDS`; any other is a field of the case as it stands.
_IN_WRONG_PLACE = (
    "{process} sent {before} and later {after} to {key}, but the second is in the log in the wrong place:"
    " {back}.{repeated}"
)
SENTENCES = {
    "malformed-offset": "{process} was told that {message} is at offset {told}. An offset is a whole number of"
    " 0 or more.",
    "untold-offset": "{process} was not told at which offset {message} is.",
    "duplicate": "A message is in the log {times}: {message} is at offsets {offsets}.",
    "inconsistent-offsets": "Offset {offset} of {key} was said to hold different messages: {values}.",
    "lost-write": "A write is lost: {message} took effect at index {index} of the log, but no poll ever"
    " returned it, although polls read up to index {max-read-index}.",
    "unseen": "{acknowledged} had not been polled by anybody when the run ended; the first is in"
    " {first-unseen}.",
    "int-poll-skip": "{process} got {before} and then {after} of {key} in one answer, without what lies"
    " between them in the log: {missed}.{behind}{repeated}",
    "int-send-skip": "{process} sent {before} and then {after} to {key} in one transaction, and messages of"
    " others came between them: {skipped}.",
    "int-nonmonotonic-poll": "{process} got {before} and then {after} of {key} in one answer:"
    " {back}.{repeated}",
    "int-nonmonotonic-send": _IN_WRONG_PLACE,
    "poll-skip": "{process} polled {key} twice in a row, and between the last message of the one answer and"
    " the first of the next, the log has messages that neither answer held: {missed}.{behind}{repeated}",
    "nonmonotonic-poll": "{process} polled {key} up to {before}, and its next poll began with {after}:"
    " {back}.{repeated}",
    "nonmonotonic-send": _IN_WRONG_PLACE,
    "G1a": "A poll returned {message}, although sending it had failed for certain.",
    "precommitted-read": "A transaction polled what it had sent itself, before it was committed:"
    " {message}.",
    "no-writer-of-value": "A poll returned {message}, which no operation sent to that key.{retyped}",
    "unreplicated": "At the end node {node} could not serve everything: {message} was acknowledged, but no"
    " final poll through {node} returned it.",
    "lost-commit": "{process} was told of {key} that {listed} is committed, and its node had acknowledged the"
    " commit of offset {committed} before.",
    "empty-transaction-graph": "No operation depends on another: too little happened to judge anything by.",
}
# Where the polls did return what they skipped.
_ELSEWHERE = {
    "int-poll-skip": "{process} got {before} and then {after} of {key} in one answer. That answer has the"
    " messages between them in the log too, but not in their place: {skipped}.{repeated}",
    "poll-skip": "{process} polled {key} twice in a row. The answers have the messages between the last one"
    " of the first answer and the first one of the second, but not in their place: {skipped}.{repeated}",
}
_STEPS = {
    "wr": "one sent {message} and the next polled it",
    "ww": "one sent {message} and the next {later} right behind it",
    "realtime": "one was completed before the next was invoked",
}


def sentence(anomaly: str, case: Mapping[str, Any]) -> str:
    """What went wrong in `case`, an instance of `anomaly` as in results.edn."""
    if anomaly.endswith("-cycle-exists"):
        text = (
            "{scc-size} transactions each depend on all the others, which no {not} system can do."
        )
    elif "steps" in case:
        text = "Transactions depend on each other in a circle: {steps}."
    else:
        text = (_ELSEWHERE if anomaly in _ELSEWHERE and not _missed(case) else SENTENCES)[anomaly]
    return _filled(text, case)


def _filled(text: str, case: Mapping[str, Any]) -> str:
    names = {name for _, name, _, _ in Formatter().parse(text) if name}
    words = {name: _WORDS[name](case) if name in _WORDS else str(case[name]) for name in names}
    return text.format_map(words)


def _list(messages: Any) -> str:
    shown = [dumps(message) for message in list(messages)[:_SHOWN]]
    return ", ".join(shown) + (", …" if len(messages) > _SHOWN else "")


def _key(case: Mapping[str, Any]) -> str:
    return f"key {dumps(case['key'])}"


def _ops(case: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return case["ops"] if "ops" in case else [case["op"]]


def _back(case: Mapping[str, Any]) -> str:
    delta = case["delta"]
    if delta == 0:
        return "the same message again"
    return f"which is {-delta} place{'s' if delta < -1 else ''} before it in the log"


def _repeated(case: Mapping[str, Any]) -> str:
    """A sentence about messages in `case` that have several places in the log; nothing without any."""
    messages = case.get("repeated")
    if not messages:
        return ""
    verb = "is" if len(messages) == 1 else "are"
    return f" ({_list(messages)} {verb} in the log more than once. The last place counts.)"


def _behind(case: Mapping[str, Any]) -> str:
    """A sentence about a skipped message that came after the poll; nothing where it was there before."""
    message = case["skipped"][0]
    if "behind" not in case or message not in _missed(case):
        return ""
    polled = _polled(_ops(case)[-1]["value"], case["key"])
    seen = case["values"][1] if "values" in case else next(polled)
    return (
        f" {dumps(message)} was put at offset {case['behind']}, behind a reader that had already seen"
        f" {dumps(seen)}."
    )


def _missed(case: Mapping[str, Any]) -> list[Any]:
    """The skipped messages that the named polls did not return at all."""
    got = {message for op in _ops(case) for message in _polled(op["value"], case["key"])}
    return [each for each in case["skipped"] if each not in got]


def _polled(value: Any, key: Any) -> Iterator[Any]:
    return (message for f, _, message in _pairs(value, key) if f == "poll")


def _pairs(value: Any, key: Any) -> Iterator[tuple[str, Any, Any]]:
    """Sent or polled, the offset and the message: all pairs that a transaction's value has of a key."""
    for mop in value if isinstance(value, list | tuple) else ():
        match mop:
            case ["send", sent_to, [offset, message, *_], *_] if sent_to == key:
                yield "send", offset, message
            case ["poll", dict(messages), *_] if isinstance(messages.get(key), list | tuple):
                yield from (
                    ("poll", pair[0], pair[1])
                    for pair in messages[key]
                    if isinstance(pair, list | tuple) and len(pair) >= 2
                )


def _retyped(case: Mapping[str, Any]) -> str:
    """What is said of a text where all that is sent are numbers."""
    is_text = isinstance(case["value"], str) and case["value"].isdigit()
    return " It is a text, and clients send numbers: give a message back as it came." * is_text


def _told(case: Mapping[str, Any]) -> str:
    """The offset that is told of a message."""
    pairs = _pairs(case["op"]["value"], case["key"])
    told = (offset for _, offset, message in pairs if scalar(message) == case["value"])
    return next(map(dumps, told), "nil")


def _acknowledged(case: Mapping[str, Any]) -> str:
    count, keys = sum(case["unseen"].values()), len(case["unseen"])
    return f"{count} acknowledged message{'s' * (count != 1)} of {keys} key{'s' * (keys != 1)}"


def _first_unseen(case: Mapping[str, Any]) -> str:
    key, messages = next(iter(case["messages"].items()))
    return f"key {dumps(key)}: {_list(messages)}"


def _steps(case: Mapping[str, Any]) -> str:
    steps = zip(case["cycle"], case["cycle"][1:], case["steps"], strict=False)
    reasons = ((_filled(_STEPS[str(each["type"])], each), a, b) for a, b, each in steps)
    return "; ".join(f"{reason} ({a['index']} → {b['index']})" for reason, a, b in reasons)


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "acknowledged": _acknowledged,
    "after": lambda case: dumps(case["values"][1]),
    "back": _back,
    "behind": _behind,
    "before": lambda case: dumps(case["values"][0]),
    "first-unseen": _first_unseen,
    "key": _key,
    "later": lambda case: dumps(case["value'"]),
    "listed": lambda case: "nothing" if case["listed"] is None else f"offset {case['listed']}",
    "message": lambda case: f"message {dumps(case['value'])} of {_key(case)}",
    "missed": lambda case: _list(_missed(case)),
    "offsets": lambda case: _list(case["offsets"]),
    "process": lambda case: f"Process {_ops(case)[-1]['process']}",
    "repeated": _repeated,
    "retyped": _retyped,
    "skipped": lambda case: _list(case["skipped"]),
    "steps": _steps,
    "times": lambda case: "twice" if case["count"] == 2 else f"{case['count']} times",
    "told": _told,
    "values": lambda case: _list(sorted(case["values"], key=dumps)),
}


# ---------------------------------------------------------------- explanations


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
    "lost-commit",
)


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """A finding for each anomaly type in `result` (what `check` returned for `history`), causes first."""
    scene = _Scene(history, "duplicate" in result)
    bad = set(result["bad-error-types"])
    shift = scene.shift() if "inconsistent-offsets" in result else ""
    return [
        Finding(
            type=str(anomaly),
            invalidating=anomaly in bad,
            count=error_count(anomaly, result[anomaly]),
            sentence=sentence(anomaly, scene.told(_instance(anomaly, result[anomaly])))
            + shift * (anomaly == "inconsistent-offsets"),
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


@dataclass(frozen=True)
class _Scene:
    """The history, to pick witnesses from; `repeats`: whether a message is in a log more than once."""

    history: Sequence[Op]
    repeats: bool

    @cached_property
    def _facts(self) -> Facts:
        return Facts(client_operations(self.history))

    @cached_property
    def _by_index(self) -> dict[int, Op]:
        return {op.index: op for op in self.history}

    @cached_property
    def _repeated(self) -> set[tuple[Key, Message]]:
        """The messages that are in the log more than once."""
        known = logs(self._facts) if self.repeats else {}
        return {
            (key, case["value"]) for key, log in known.items() for case in duplicate_cases(key, log)
        }

    def shift(self) -> str:
        """What is said if sends and polls differ in all offsets alike: by one, or in the order of a pair."""
        told, polled = (
            {
                (key, message): offset
                for each in self._facts.transactions
                for key, pairs in getattr(each, name).items()
                for message, offset in zip(pairs.messages, pairs.offsets, strict=True)
            }
            for name in ("sends", "polls")
        )
        by = {(told[each] or 0) - (polled[each] or 0) for each in told.keys() & polled.keys()}
        pairs = (told.get((key, offset)) == message for (key, message), offset in polled.items())
        if all(pairs) and any(offset != message for (_, message), offset in polled.items()):
            return " Polls have [message, offset], and right is [offset, message]."
        differ = " Each send_ok has an offset that differs by {:+} from that in polls."
        return differ.format(*by) if by in ({1}, {-1}) else ""

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
        last = max(op["index"] for op in _ops(case))
        for transaction in self._facts.transactions:
            for pairs in (transaction.sends.get(case["key"]), transaction.polls.get(case["key"])):
                if transaction.type == "ok" and pairs and message in pairs.messages:
                    offset = pairs.offsets[pairs.messages.index(message)]
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
            roles = (case[role] for role in _ROLES if case.get(role))
            own = (self._by_index[op["index"]] for op in (*roles, *case.get("ops", ())))
            named = [*own, *self._sightings(anomaly, case)]
        return [_focused(op, wanted) for op in {op.index: op for op in named}.values()]

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
        shown = (
            transaction.op
            for transaction in self._facts.transactions
            for pairs in (transaction.sends.get(key), transaction.polls.get(key))
            for at, each in (zip(pairs.offsets, pairs.messages, strict=True) if pairs else ())
            if each == message and offset in (None, at)
        )
        return islice(shown, 1)


def _messages(case: Mapping[str, Any]) -> Iterator[Message]:
    if "value" in case:
        yield case["value"]
    yield from case.get("values", ())
    yield from case.get("skipped", ())[:1]


def _focused(op: Op, wanted: Iterable[tuple[Key, Message]]) -> Op:
    """`op` with only the wanted messages in its polls; whole if it has none of them, but cut short."""
    by_key = {key: set(messages) for key, messages in grouped(wanted).items()}
    if not isinstance(op.value, list):
        return op
    value = [_focused_mop(mop, by_key) for mop in op.value]
    return without(replace(op, value=value), _polled_count(op.value) - _polled_count(value))


def _polled_count(value: Sequence[Any]) -> int:
    """How many messages the polls of a transaction returned."""
    answers = (mop[1] for mop in value if _is_answer(mop))
    return sum(len(pairs) for each in answers for pairs in each.values() if isinstance(pairs, list))


def _is_answer(mop: Any) -> bool:
    """Whether a micro-operation is a poll with what it returned."""
    return isinstance(mop, list) and len(mop) == 2 and isinstance(mop[1], dict)


def _focused_mop(mop: Any, wanted: Mapping[Key, set[Message]]) -> Any:
    if not _is_answer(mop):
        return mop
    kept = {}
    for key, pairs in mop[1].items():
        messages = wanted.get(scalar(key))
        if messages is not None and isinstance(pairs, list):
            kept[key] = [pair for pair in pairs if _message(pair) in messages] or pairs[-1:]
    return [mop[0], kept]


def _message(pair: Any) -> Message:
    return scalar(pair[1]) if isinstance(pair, list) and len(pair) > 1 else scalar(dumps(None))
