"""Checks, values and witnesses in words, for a terminal and for pages."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.failure import clip
from runs import edn
from runs.facts import mapping, never_succeeded
from runs.history import Op
from runs.oddities import in_other_names
from workloads.interface import LEFT_OUT

_CHARACTERS = 400  # of a value
_MESSAGES = 8  # of one key
# Of a check: what is said in sentences, or not at all.
_SILENCE = 10  # operations without success that are told
_SAID = ("valid?", "by-f", "reasons", "repeated", "by-node")


def complaints(check: Mapping[Any, Any], width: int) -> Iterator[str]:
    """What a check says that did not pass, in sentences; values are cut to so many characters."""
    reasons = mapping(check.get("reasons"))
    said = [
        f"{f} never succeeded{': ' if f in reasons else '.'}{reasons.get(f, '')}"
        for f in never_succeeded(check)
    ]
    if "ok-fraction" in check:
        said.append(f"{check['ok-fraction']:.1%} of the operations succeeded, less than asked for.")
        if check.get("later", 0) >= _SILENCE:
            last = check["last-ok"]
            when = last and " after {:.3f} s, when process {}'s {} did".format(
                last["time"] / 1e9, last["process"], last["f"]
            )
            said.append(f"No operation succeeded{when or ''}: {check['later']} were tried.")
    said += [*repeated(check), *in_other_names(mapping(check.get("by-node")))]
    yield from said
    numbers = {name: value for name, value in check.items() if name not in _SAID}
    if numbers and not said:
        yield "; ".join(f"{name}: {clip(edn.dumps(each), width)}" for name, each in numbers.items())


def repeated(answers: Mapping[Any, Any]) -> Iterator[str]:
    """How often each node answered again, in a sentence."""
    return (
        f"{node} sent {count} answers to requests that had been answered before."
        for node, count in sorted(mapping(answers.get("repeated")).items())
    )


def readable(value: Any) -> str:
    """Transactions of the workload `kafka` in words, a line for each key; any other value as EDN.

    `[[:poll {"6" [[16 5] [17 8]]}]]` becomes `key "6": message 5 at offset 16, message 8 at offset 17`.
    A long value is cut.
    """
    if value is None:
        return ""
    if value == []:
        return "[]"
    lines = [_micro_operation(micro) for micro in value] if isinstance(value, list) else [None]
    text = "\n".join(line for line in lines if line) if None not in lines else edn.dumps(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} …"


def left_out(op: Op) -> str:
    """How many of an operation's values a witness leaves out, to stand behind the others."""
    count = op.extra.get(LEFT_OUT, 0)
    return f" ({count} more {'is' if count == 1 else 'are'} not shown)" if count else ""


def _micro_operation(micro: Any) -> str | None:
    """None where it is of another form."""
    match micro:
        case ["send", key, [offset, message]]:
            return f"key {edn.dumps(key)}: {_place(offset, message)}"
        case ["send", key, message]:
            return f"key {edn.dumps(key)}: message {edn.dumps(message)}"
        case ["poll"]:
            return "any key that is assigned"
        case ["poll", dict(by_key)]:
            parts = [_polled(key, pairs) for key, pairs in by_key.items()]
            known = [part for part in parts if part]
            return ("\n".join(known) or "nothing") if len(known) == len(parts) else None
    return None


def _polled(key: Any, pairs: Any) -> str | None:
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        return None
    shown = [_place(*pair) for pair in pairs[:_MESSAGES]]
    more = [f"{len(pairs) - _MESSAGES} more"] if len(pairs) > _MESSAGES else []
    return f"key {edn.dumps(key)}: {', '.join([*shown, *more]) or 'nothing'}"


def _place(offset: Any, message: Any) -> str:
    return f"message {edn.dumps(message)} at offset {edn.dumps(offset)}"
