"""What comes in from the store and from peers is checked once, at the edge; nothing raises out of a step."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from leaderless.core.coordination import Misfit
from leaderless.core.headlog.index import (
    Index,
    IndexEntry,
    decode_part,
    distribute,
    index_of,
    new_page,
)
from leaderless.core.headlog.records import (
    Head,
    Segment,
    head_of,
    merge,
    segment_of,
    value_of_heading,
)
from leaderless.core.messages import Entry, Heading
from leaderless.core.shape import Shape
from leaderless.wire.bodies import answer_of

ENTRIES = [
    Entry("n0.i/0", 1, {"k": (0, ["a", None])}, {}),
    Entry("n1.i/0", 1, {"k": (2, [{"x": 1}]), "j": (0, [2])}, {"k": 1}),
]
SEGMENT = Segment(0, ENTRIES)
HEAD = Head(Heading(version=3, by="n1", size=9), ENTRIES)
RUN = merge([SEGMENT])
LISTED = IndexEntry(0, 0, 15, 0, 2, 1, 60)
INDEX = Index(2, 16, (LISTED,))
PAGE = new_page([LISTED])
distribute(RUN, 0, {0: PAGE}, 1)
RECORDS: list[tuple[Callable[..., Any], Any]] = [
    (head_of, HEAD),
    (segment_of, SEGMENT),
    (decode_part, RUN),
    (decode_part, PAGE),
    (index_of, INDEX),
]
JUNK: list[Any] = [None, True, -1, 1.5, "x", [], {}, [None], {"k": None}, [[[[]]]]]


def json_of(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def broken(value: Any) -> list[Any]:
    """The value with one part of it replaced by junk, or left out, at every place."""
    found: list[Any] = []
    if isinstance(value, dict):
        found += [{name: each for name, each in value.items() if name != gone} for gone in value]
        found += [value | {name: part} for name in value for part in broken(value[name])]
    elif isinstance(value, list):
        for place, each in enumerate(value):
            found += [[*value[:place], part, *value[place + 1 :]] for part in broken(each)]
    return [*found, *JUNK]


@pytest.mark.parametrize(("decode", "record"), RECORDS)
def test_what_was_written_is_read(decode: Any, record: Any) -> None:
    assert decode(json_of(record.value)) == record


@pytest.mark.parametrize(("decode", "record"), RECORDS)
def test_a_decoder_takes_a_record_or_raises_misfit(decode: Any, record: Any) -> None:
    refused = 0
    for value in broken(json_of(record.value)):
        try:
            decoded = decode(value)
        except Misfit:
            refused += 1
        else:
            assert decoded is None or json_of(decoded.value).keys() <= value.keys()
    assert refused > len(JUNK)


@pytest.mark.parametrize("version", [1, 3])
def test_an_index_of_another_format_is_refused(version: int) -> None:
    with pytest.raises(Misfit, match=f"index of format {version}, and this version knows 5"):
        index_of({**(INDEX.value or {}), "format": version})


@pytest.mark.parametrize(
    "wrong",
    [{"version": "9"}, {"base": None}, {"state": "ajar"}, {"shape": [1, 2]}, {"shape": "large"}],
)
def test_a_head_that_makes_no_sense_is_no_answer_of_a_peer(wrong: dict[str, Any]) -> None:
    heading = Heading(version=1, by="n1", shape=Shape())
    body = {"type": "hand_over_ok", "slot": 0, "entries": [], "held_s": 0.0}
    assert answer_of(body | {"head": value_of_heading(heading)}) is not None
    assert answer_of(body | {"head": value_of_heading(heading) | wrong}) is None
