"""The values of operations in words."""

from typing import Any

from runs.edn import dumps

_CHARACTERS = 400  # of a value
_MESSAGES = 8  # of one key


def readable(value: Any) -> str:
    """Transactions of the workload `kafka` in words, a line for each key; any other value as EDN.

    `[[:poll {"6" [[16 5] [17 8]]}]]` becomes `key "6": message 5 at offset 16, message 8 at offset 17`.
    A long value is cut.
    """
    if value is None:
        return ""
    lines = [_micro_operation(micro) for micro in value] if isinstance(value, list) else [None]
    text = "\n".join(line for line in lines if line) if None not in lines else dumps(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} …"


def _micro_operation(micro: Any) -> str | None:
    """None where it is of another form."""
    match micro:
        case ["send", key, [offset, message]]:
            return f"key {dumps(key)}: {_place(offset, message)}"
        case ["send", key, message]:
            return f"key {dumps(key)}: message {dumps(message)}"
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
    return f"key {dumps(key)}: {', '.join([*shown, *more]) or 'nothing'}"


def _place(offset: Any, message: Any) -> str:
    return f"message {dumps(message)} at offset {dumps(offset)}"
