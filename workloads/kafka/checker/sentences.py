"""A sentence for each type of anomaly: what went wrong, in the words of a log's user."""

from collections.abc import Callable, Iterator, Mapping
from string import Formatter
from typing import Any

from runs.edn import dumps
from workloads.kafka.checker.observed import scalar

_SHOWN = 5  # messages named in a sentence

# The words in braces are those of `_WORDS`; any other is a field of the case as it stands.
_IN_WRONG_PLACE = (
    "{process} sent {before} and later {after} to {key}, but the second is in the log in the wrong place:"
    " {back}.{repeated}"
)
SENTENCES = {
    "malformed-offset": "{process} was told that {message} is at offset {told}. An offset is a whole number of"
    " 0 or more.",
    "untold-offset": "{process} was not told at which offset {message} is.",
    "duplicate": "One message is in the log {count} times: {message} is at offsets {offsets}.",
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
    "no-writer-of-value": "A poll returned {message}, which no operation sent to that key.",
    "unreplicated": "At the end node {node} could not serve everything: {message} was acknowledged, but no"
    " final poll through {node} returned it.",
    "empty-transaction-graph": "No operation depends on another: too little happened to judge anything by.",
}
# Where the polls did return what they skipped.
_ELSEWHERE = {
    "int-poll-skip": "{process} got {before} and then {after} of {key} in one answer, and what lies between"
    " them in the log at another place of that answer: {skipped}.{repeated}",
    "poll-skip": "{process} polled {key} twice in a row. What lies between the last message of the one"
    " answer and the first of the next came at another place of these answers: {skipped}.{repeated}",
}
_CYCLE_EXISTS = (
    "{scc-size} transactions each depend on all the others, which no {not} system can do."
)
_CYCLE = "Transactions depend on each other in a circle: {steps}."
_STEPS = {
    "wr": "one sent {message} and the next polled it",
    "ww": "one sent {message} and the next {later} right behind it",
    "realtime": "one was completed before the next was invoked",
}


def sentence(anomaly: str, case: Mapping[str, Any]) -> str:
    """What went wrong in `case`, an instance of `anomaly` as in results.edn."""
    if anomaly.endswith("-cycle-exists"):
        text = _CYCLE_EXISTS
    elif "steps" in case:
        text = _CYCLE
    else:
        seen = anomaly in _ELSEWHERE and not _missed(case)
        text = (_ELSEWHERE if seen else SENTENCES)[anomaly]
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


def _process(case: Mapping[str, Any]) -> str:
    op = case["op"] if "op" in case else case["ops"][-1]
    return f"Process {op['process']}"


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
    ops = case.get("ops") or [case["op"]]
    seen = case["values"][1] if "values" in case else next(_polled(ops[-1]["value"], case["key"]))
    return (
        f" {dumps(message)} was put at offset {case['behind']}, behind a reader that had already seen"
        f" {dumps(seen)}."
    )


def _missed(case: Mapping[str, Any]) -> list[Any]:
    """The skipped messages that the named polls did not return at all."""
    ops = case["ops"] if "ops" in case else [case["op"]]
    got = {message for op in ops for message in _polled(op["value"], case["key"])}
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
                for pair in messages[key]:
                    if isinstance(pair, list | tuple) and len(pair) >= 2:
                        yield "poll", pair[0], pair[1]


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
    "message": lambda case: f"message {dumps(case['value'])} of {_key(case)}",
    "missed": lambda case: _list(_missed(case)),
    "offsets": lambda case: _list(case["offsets"]),
    "process": _process,
    "repeated": _repeated,
    "skipped": lambda case: _list(case["skipped"]),
    "steps": _steps,
    "told": _told,
    "values": lambda case: _list(sorted(case["values"], key=dumps)),
}
