"""Judges one more reader of the log, which is no client of the test: such as a stream of another program.

A reader gives the records of the log in the order in which it saw them. For each key they must be a prefix of
the key: offsets from 0, each once, in order, and each the message that clients sent or polled there. At the end
the reader must have everything that clients know of. What no client knows, because its send had no answer, may
be there or not.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from runs.history import Op
from workloads.kafka.checker.observed import Facts, client_operations

EXAMPLES = 3  # of each problem


class Record(NamedTuple):
    """What a reader saw."""

    key: str
    offset: int
    message: Any


def problems(history: Sequence[Op], seen: Iterable[Record]) -> list[str]:
    """What is wrong with a reader, a sentence each, with `EXAMPLES` of each kind; none: it is right.

    `seen`: its records in the order in which it saw them, after it has read to the end.
    """
    records = [*seen]
    known = _known(history)
    kinds = (_not_in_order(records), _other_messages(records, known), _missing(records, known))
    return [sentence for kind in kinds for sentence in _some([*kind])]


def _known(history: Sequence[Op]) -> dict[tuple[str, int], Any]:
    """The messages whose places clients were told."""
    known: dict[tuple[str, int], Any] = {}
    for transaction in Facts(client_operations(history)).transactions:
        if transaction.type == "ok":
            for key, run in [*transaction.sends.items(), *transaction.polls.items()]:
                for offset, message in zip(run.offsets, run.messages, strict=True):
                    if offset is not None:
                        known[str(key), offset] = message
    return known


def _not_in_order(records: Sequence[Record]) -> Iterator[str]:
    ends: dict[str, int] = {}
    for key, offset, _ in records:
        end = ends.get(key, 0)
        if offset > end:
            yield f"key {key}: the reader skipped offsets {end} to {offset - 1}"
        elif offset < end:
            yield f"key {key}: the reader saw offset {offset} again, or after a later one"
        ends[key] = max(end, offset + 1)


def _other_messages(records: Sequence[Record], known: dict[tuple[str, int], Any]) -> Iterator[str]:
    for key, offset, message in records:
        place = key, offset
        if place in known and known[place] != message:
            yield f"key {key}, offset {offset}: the reader saw {message!r}, clients {known[place]!r}"


def _missing(records: Sequence[Record], known: dict[tuple[str, int], Any]) -> Iterator[str]:
    places = {(key, offset) for key, offset, _ in records}
    for key, offset in sorted(known.keys() - places):
        yield f"key {key}: the reader never saw offset {offset}, which a client knows"


def _some(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - EXAMPLES
    return [*sentences[:EXAMPLES], *([f"... and {more} more of this kind"] if more > 0 else [])]
