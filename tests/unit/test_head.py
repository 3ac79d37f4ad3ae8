"""The head register: how it grows, when it is full, and what a fence changes."""

from typing import Any

import orjson
import pytest

from leaderless.core.coordination import Misfit
from leaderless.core.headlog.records import ENTRY_BYTES, Head, head_of
from leaderless.core.messages import Entry, Heading
from leaderless.core.shape import Shape

SHAPE = Shape()
SEAL_BYTES, SEAL_ENTRIES = SHAPE.seal_bytes, SHAPE.seal_entries
EMPTY = Head(Heading(shape=SHAPE), [])
ENTRY = Entry("n0/0", 1, {"k": (0, ["x"])}, {})


def json_of(value: Any) -> Any:
    """What a store gives back of a value."""
    return orjson.loads(orjson.dumps(value))


def entries(count: int) -> list[Entry]:
    return [Entry("n0/0", seq, {}, {}) for seq in range(count)]


@pytest.mark.parametrize("size", [1, SEAL_BYTES])
def test_a_value_made_from_the_one_before_is_the_head(size: int) -> None:
    before = Head(Heading("fenced", 3, 7, "n1", 2, 40, 9, SHAPE), [ENTRY])
    assert before.value is not None
    after = before.with_entries([ENTRY._replace(seq=2)], size, "n0")
    assert head_of(json_of(after.value)) == after
    assert after.value == Head(after.heading, after.tail).value


@pytest.mark.parametrize("base", [40, 41])
@pytest.mark.parametrize("first", [ENTRY, ENTRY._replace(seq=7)])
def test_a_head_is_the_same_whatever_was_known_before(base: int, first: Entry) -> None:
    known = head_of(json_of(Head(Heading("open", 3, 7, "n1", 2, 40, 9, SHAPE), [ENTRY]).value))
    newer = known.heading._replace(version=8, base=base)
    value: Any = json_of(Head(newer, [first, ENTRY._replace(seq=8)]).value)
    assert head_of(value, known) == head_of(value) == Head(newer, [first, ENTRY._replace(seq=8)])
    assert (head_of(value, known).tail[0] is known.tail[0]) == (base == 40 and first == ENTRY)
    bad: Any
    for bad in (None, {}, [["n0/0", "x", {}, {}]], [*value["entries"], 7]):
        with pytest.raises(Misfit):
            head_of(value | {"entries": bad}, known)


def test_no_two_values_are_equal() -> None:
    head = EMPTY.with_entries([ENTRY], 1, "n0")
    there_and_back = head.with_state("fenced", "n0").with_state("open", "n0")
    assert there_and_back.value != head.value
    assert (there_and_back.epoch, there_and_back.version) == (2, 3)


@pytest.mark.parametrize(
    ("count", "size", "full"),
    [
        (1, 1, False),
        (1, SEAL_BYTES - ENTRY_BYTES, True),
        (1, 1_000_000, True),
        (SEAL_ENTRIES - 1, 0, SEAL_ENTRIES * ENTRY_BYTES > SEAL_BYTES),
        (SEAL_ENTRIES, 0, True),
    ],
)
def test_full(count: int, size: int, full: bool) -> None:
    assert EMPTY.with_entries(entries(count), size, "n0").full is full


def test_the_head_keeps_what_its_segment_lacks() -> None:
    """Another process may have written the segment when the tail was shorter."""
    full = EMPTY.with_entries(entries(3), 1_000_000, "n0")
    head = full.with_entries([ENTRY], 5, "n1", kept=2)
    assert (head.sealed, head.base, head.end) == (1, 2, 4)
    assert head.tail == [*full.tail[2:], ENTRY]
