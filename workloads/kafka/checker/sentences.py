"""A sentence for each type of anomaly: what went wrong, in the words of a log's user."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runs.edn import dumps

_SHOWN = 5  # messages named in a sentence


def sentence(anomaly: str, case: Mapping[str, Any]) -> str:
    """What went wrong in `case`, an instance of `anomaly` as in results.edn."""
    if anomaly.endswith("-cycle-exists"):
        return _cycle_exists(case)
    return (_cycle if "steps" in case else SENTENCES[anomaly])(case)


def _list(messages: Any) -> str:
    shown = [dumps(message) for message in list(messages)[:_SHOWN]]
    return ", ".join(shown) + (", …" if len(messages) > _SHOWN else "")


def _key(case: Mapping[str, Any]) -> str:
    return f"key {dumps(case['key'])}"


def _value(case: Mapping[str, Any]) -> str:
    return f"message {dumps(case['value'])} of {_key(case)}"


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


def _missed(case: Mapping[str, Any]) -> list[Any]:
    """The skipped messages that the named polls did not return at all."""
    ops = case["ops"] if "ops" in case else [case["op"]]
    got = {message for op in ops for message in _polled(op["value"], case["key"])}
    return [each for each in case["skipped"] if each not in got]


def _polled(value: Any, key: Any) -> Iterator[Any]:
    for mop in value if isinstance(value, list | tuple) else ():
        if mop[0] == "poll" and len(mop) > 1 and isinstance(mop[1], dict):
            yield from (pair[1] for pair in mop[1].get(key, ()))


def _duplicate(case: Mapping[str, Any]) -> str:
    return (
        f"One message is in the log {case['count']} times: {_value(case)}"
        f" is at offsets {_list(case['offsets'])}."
    )


def _inconsistent_offsets(case: Mapping[str, Any]) -> str:
    values = sorted(case["values"], key=dumps)
    return f"Offset {case['offset']} of {_key(case)} was said to hold different messages: {_list(values)}."


def _lost_write(case: Mapping[str, Any]) -> str:
    return (
        f"A write is lost: {_value(case)} took effect at index {case['index']} of the log, but no poll"
        f" ever returned it, although polls read up to index {case['max-read-index']}."
    )


def _unseen(case: Mapping[str, Any]) -> str:
    count, keys = sum(case["unseen"].values()), len(case["unseen"])
    return (
        f"{count} acknowledged message{'s' * (count != 1)} of {keys} key{'s' * (keys != 1)} had not been"
        f" polled by anybody when the run ended; the first is in {_first_unseen(case)}."
    )


def _first_unseen(case: Mapping[str, Any]) -> str:
    key, messages = next(iter(case["messages"].items()))
    return f"key {dumps(key)}: {_list(messages)}"


def _int_poll_skip(case: Mapping[str, Any]) -> str:
    before, after = case["values"]
    got = f"{_process(case)} got {dumps(before)} and then {dumps(after)} of {_key(case)} in one answer"
    missed = _missed(case)
    if missed:
        return (
            f"{got}, without what lies between them in the log: {_list(missed)}.{_repeated(case)}"
        )
    return (
        f"{got}, and what lies between them in the log at another place of that answer:"
        f" {_list(case['skipped'])}.{_repeated(case)}"
    )


def _poll_skip(case: Mapping[str, Any]) -> str:
    polled = f"{_process(case)} polled {_key(case)} twice in a row"
    missed = _missed(case)
    if missed:
        return (
            f"{polled}, and between the last message of the one answer and the first of the next, the"
            f" log has messages that neither answer held: {_list(missed)}.{_repeated(case)}"
        )
    return (
        f"{polled}. What lies between the last message of the one answer and the first of the next came"
        f" at another place of these answers: {_list(case['skipped'])}.{_repeated(case)}"
    )


def _int_nonmonotonic_poll(case: Mapping[str, Any]) -> str:
    before, after = case["values"]
    return (
        f"{_process(case)} got {dumps(before)} and then {dumps(after)} of {_key(case)} in one answer:"
        f" {_back(case)}.{_repeated(case)}"
    )


def _nonmonotonic_poll(case: Mapping[str, Any]) -> str:
    before, after = case["values"]
    return (
        f"{_process(case)} polled {_key(case)} up to {dumps(before)}, and its next poll began with"
        f" {dumps(after)}: {_back(case)}.{_repeated(case)}"
    )


def _int_send_skip(case: Mapping[str, Any]) -> str:
    before, after = case["values"]
    return (
        f"{_process(case)} sent {dumps(before)} and then {dumps(after)} to {_key(case)} in one"
        f" transaction, and messages of others came between them: {_list(case['skipped'])}."
    )


def _nonmonotonic_send(case: Mapping[str, Any]) -> str:
    before, after = case["values"]
    return (
        f"{_process(case)} sent {dumps(before)} and later {dumps(after)} to {_key(case)}, but the second"
        f" is in the log in the wrong place: {_back(case)}.{_repeated(case)}"
    )


def _aborted_read(case: Mapping[str, Any]) -> str:
    return f"A poll returned {_value(case)}, although sending it had failed for certain."


def _precommitted_read(case: Mapping[str, Any]) -> str:
    return f"A transaction polled what it had sent itself, before it was committed: {_value(case)}."


def _no_writer(case: Mapping[str, Any]) -> str:
    return f"A poll returned {_value(case)}, which no operation sent to that key."


def _unreplicated(case: Mapping[str, Any]) -> str:
    return (
        f"At the end node {case['node']} could not serve everything: {_value(case)} was acknowledged, but"
        f" no final poll through {case['node']} returned it."
    )


def _empty(case: Mapping[str, Any]) -> str:  # noqa: ARG001 - one signature for all sentences
    return "No operation depends on another: too little happened to judge anything by."


def _cycle_exists(case: Mapping[str, Any]) -> str:
    return (
        f"{case['scc-size']} transactions each depend on all the others, which no"
        f" {case['not']} system can do."
    )


def _cycle(case: Mapping[str, Any]) -> str:
    steps = zip(case["cycle"], case["cycle"][1:], case["steps"], strict=False)
    reasons = [f"{_reason(step)} ({a['index']} → {b['index']})" for a, b, step in steps]
    return f"Transactions depend on each other in a circle: {'; '.join(reasons)}."


def _reason(step: Mapping[str, Any]) -> str:
    match str(step["type"]):
        case "wr":
            return f"one sent {_value(step)} and the next polled it"
        case "ww":
            after = dumps(step["value'"])
            return f"one sent {_value(step)} and the next {after} right behind it"
        case _:
            return "one was completed before the next was invoked"


SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "duplicate": _duplicate,
    "inconsistent-offsets": _inconsistent_offsets,
    "lost-write": _lost_write,
    "unseen": _unseen,
    "int-poll-skip": _int_poll_skip,
    "int-send-skip": _int_send_skip,
    "int-nonmonotonic-poll": _int_nonmonotonic_poll,
    "int-nonmonotonic-send": _nonmonotonic_send,
    "poll-skip": _poll_skip,
    "nonmonotonic-poll": _nonmonotonic_poll,
    "nonmonotonic-send": _nonmonotonic_send,
    "G1a": _aborted_read,
    "precommitted-read": _precommitted_read,
    "no-writer-of-value": _no_writer,
    "unreplicated": _unreplicated,
    "empty-transaction-graph": _empty,
}
