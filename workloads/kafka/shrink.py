"""Kafka histories for `workloads.shrink`: what an anomaly is called, and messages as parts of a history."""

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from runs.history import Op
from workloads.kafka.checker import check
from workloads.shrink import OPERATIONS, Cut, shrink

# The fields that identify a case of a type; indices and distances change while other messages go.
_NAMING = {"lost-write": ("key", "value")}
_NAMING_OTHERS = ("key", "value", "values", "offset", "op", "ops")


def smallest(history: Sequence[Op], kinds: Container[str]) -> list[Op]:
    """A part of a history that shows an anomaly of these types with few messages and operations."""
    return shrink(history, anomalies, (MESSAGES, OPERATIONS), lambda name: _kind(name) in kinds)


def anomalies(history: Sequence[Op]) -> set[Hashable]:
    """A name for each anomaly that the checker shows of a history: its type, and what it is about."""
    result = cast("dict[str, Any]", check(history, {}))
    names: set[Hashable] = set()
    for anomaly in result["error-types"]:
        if anomaly == "unseen":
            messages = result["unseen"]["messages"]
            names |= {
                ("unseen", key, message) for key, each in messages.items() for message in each
            }
        elif isinstance(result[anomaly]["errs"], tuple):
            names |= {(str(anomaly), *_name(anomaly, case)) for case in result[anomaly]["errs"]}
        else:
            names.add((str(anomaly),))
    return names


def _kind(name: Hashable) -> str:
    return name[0] if isinstance(name, tuple) else ""


def _name(anomaly: str, case: Any) -> Iterator[Hashable]:
    for field in _NAMING.get(anomaly, _NAMING_OTHERS):
        if isinstance(case, dict) and field in case:
            yield _identity(case[field])


def _identity(value: Any) -> Hashable:
    """Operations by their index; anything else as it is written."""
    if isinstance(value, dict) and "index" in value:
        return int(value["index"])
    return tuple(map(_identity, value)) if isinstance(value, list | tuple) else repr(value)


def _messages(history: Sequence[Op]) -> list[Hashable]:
    """`(key, message)` for all that was sent, in order."""
    sends = (op.value[0] for op in history if op.f == "send" and op.type == "invoke")
    return [(key, repr(message)) for _, key, message in sends]


def _without_messages(history: Sequence[Op], dropped: set[Hashable]) -> list[Op]:
    """Neither sent nor polled; a poll that got nothing else got nothing."""
    smaller = (_without_in_op(op, dropped) for op in history)
    return [op for op in smaller if op is not None]


def _without_in_op(op: Op, dropped: set[Hashable]) -> Op | None:
    if op.f == "send":
        _, key, message = op.value[0]
        sent = message[1] if op.type == "ok" else message
        return None if (key, repr(sent)) in dropped else op
    if op.f == "poll" and len(op.value[0]) > 1:
        left = {
            key: [pair for pair in pairs if (key, repr(pair[1])) not in dropped]
            for key, pairs in op.value[0][1].items()
        }
        messages = {key: pairs for key, pairs in left.items() if pairs}
        return replace(op, value=[[op.value[0][0], messages]])
    return op


MESSAGES = Cut(_messages, _without_messages)
