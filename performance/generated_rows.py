"""The rows of a generated log, made by numpy: which message a number stands for, in any order."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leaderless.core.headlog.records import Run, Segment
from leaderless.core.messages import Entry
from leaderless.table.schema import COLUMNS, micros_of

AT = 1.7e9  # when all segments were written, in seconds since 1970
WRITER = "performance"
CHUNK_ROWS = 200_000  # of a table, about

Numbers = npt.NDArray[np.uint64]
_FOUR = np.array([f"{number:04}" for number in range(10_000)], dtype="S4")
_OF_A_WORD = 4  # groups of four digits that a random word of 64 bits gives


class Shape(NamedTuple):
    """So many messages of `width` characters, spread evenly over keys.

    The first half of a message is its number, the second one has digits that look random. A batch has `batch`
    messages, and is a segment of its own. Message `n` has key `n % keys` and offset `n // keys`.
    """

    messages: int
    keys: int
    width: int
    batch: int

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return -(-self.messages // self.batch)

    @property
    def names(self) -> list[str]:
        """The names of the keys, in their order."""
        return _names(self.keys)

    def numbers(self, first: int, end: int) -> range:
        """The messages of batches `first` to `end` - 1."""
        return range(first * self.batch, min(end * self.batch, self.messages))

    def records(self, first: int) -> list[tuple[str, str]]:
        """The keys and values of the batch whose first message is `first`."""
        numbers = range(first, min(first + self.batch, self.messages))
        texts = values(np.arange(numbers.start, numbers.stop, dtype=np.uint64), self.width)
        names = self.names
        return [
            (names[number % self.keys], text)
            for number, text in zip(numbers, texts.to_pylist(), strict=True)
        ]

    def segment(self, batch: int) -> Segment:
        """The segment of a batch."""
        appends: dict[str, tuple[int, list[str]]] = {}
        first = self.numbers(batch, batch + 1).start
        for number, (key, value) in enumerate(self.records(first), first):
            appends.setdefault(key, (number // self.keys, []))[1].append(value)
        return Segment(batch, [Entry(WRITER, batch, appends, {})])

    def outline(self, first: int, end: int) -> Run:
        """The run of batches `first` to `end` - 1, with a range of numbers in place of messages."""
        newest = end - 1
        placed = {
            key: offsets.start for key, offsets in self._offsets(self.numbers(newest, end)).items()
        }
        blocks = {
            key: (offsets.start, offsets)
            for key, offsets in self._offsets(self.numbers(first, end)).items()
        }
        return Run(first, end, blocks, {}, {WRITER: (newest, placed)})  # type: ignore[arg-type]

    def _offsets(self, numbers: range) -> dict[str, range]:
        """Of each key its offsets among some messages."""
        bounds = self._bounds(numbers, 0, self.keys).tolist()
        return {
            name: range(low, high)
            for name, (low, high) in zip(self.names, bounds, strict=True)
            if low < high
        }

    def _bounds(self, numbers: range, key: int, end: int) -> npt.NDArray[np.int64]:
        """Of keys `key` to `end` - 1: the first offset among some messages, and the one after the last."""
        keys = np.arange(key, end, dtype=np.int64)
        low, high = (-((keys - bound) // self.keys) for bound in (numbers.start, numbers.stop))
        return np.stack([low, high], axis=1)

    def tables(self, first: int, end: int) -> Iterator[pa.Table]:
        """The rows of batches `first` to `end` - 1, in the order of key and offset."""
        numbers = self.numbers(first, end)
        step = max(1, self.keys * CHUNK_ROWS // len(numbers))
        for key in range(0, self.keys, step):
            yield self._table(numbers, key, min(key + step, self.keys))

    def _table(self, numbers: range, first: int, end: int) -> pa.Table:
        bounds = self._bounds(numbers, first, end)
        counts = bounds[:, 1] - bounds[:, 0]
        place = np.repeat(np.arange(end - first), counts)
        begins = np.cumsum(counts) - counts
        offsets = np.arange(len(place)) + (bounds[:, 0] - begins)[place]
        messages = offsets * self.keys + first + place
        rows, slots = len(place), messages // self.batch
        names = pa.array(self.names[first:end])
        texts = values(messages.astype(np.uint64), self.width, quote='"')
        writer, micros = (
            pa.scalar(WRITER),
            pa.scalar(micros_of(AT), COLUMNS.field("appended_at").type),
        )
        columns = [
            names.take(pa.array(place)), pa.array(offsets), texts,
            *(pa.nulls(rows, COLUMNS.field(name).type) for name in ("bytes", "message")),
            pa.repeat(writer, rows), pa.array(slots), pa.array(slots), pa.repeat(micros, rows),
        ]  # fmt: skip
        return pa.Table.from_arrays(columns, schema=COLUMNS)


@cache
def _names(keys: int) -> list[str]:
    return [f"k{number:06}" for number in range(keys)]


def values(numbers: Numbers, width: int, quote: str = "") -> pa.Array:
    """The messages of some numbers, between quotes."""
    half = width // 2
    groups = -(-(width - half) // 4)
    words = -(-groups // _OF_A_WORD)
    hashed = np.stack(
        [_mixed(numbers * np.uint64(words) + np.uint64(at)) for at in range(words)], 1
    )
    shifts = np.arange(0, 16 * _OF_A_WORD, 16, dtype=np.uint64)
    random = (hashed[:, :, None] >> shifts & np.uint64(0xFFFF)).reshape(len(numbers), -1)
    marks = np.full((len(numbers), 1), ord(quote or " "), dtype=np.uint8)[:, : len(quote)]
    parts = [marks, _decimal(numbers, half), _digits(random)[:, : width - half], marks]
    return _strings(np.concatenate(parts, axis=1))


def _decimal(numbers: Numbers, width: int) -> npt.NDArray[np.uint8]:
    """Numbers below 10 ** 16 with leading zeros."""
    powers = np.uint64(10_000) ** np.arange(3, -1, -1, dtype=np.uint64)
    shown = _digits(numbers[:, None] // powers)
    zeros = np.full((len(numbers), max(0, width - 16)), ord("0"), dtype=np.uint8)
    return np.concatenate([zeros, shown], axis=1)[:, -width:]


def _digits(groups: Numbers) -> npt.NDArray[np.uint8]:
    """Each number as its last four digits, those of a row side by side."""
    shown = np.ascontiguousarray(_FOUR[groups % np.uint64(10_000)])
    return shown.view(np.uint8).reshape(len(groups), -1)


def _mixed(numbers: Numbers) -> Numbers:
    """A hash of each number: SplitMix64 (Steele, Lea, Flood 2014)."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _strings(letters: npt.NDArray[np.uint8]) -> pa.Array:
    """Each row of characters as a string."""
    rows, width = letters.shape
    ends = pa.py_buffer(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    return pa.StringArray.from_buffers(rows, ends, pa.py_buffer(np.ascontiguousarray(letters)))
