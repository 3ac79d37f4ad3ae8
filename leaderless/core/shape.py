"""The shape of a log: what all who write it must agree on. It stands in the log and holds for all its life.

    head      {..., shape: [register_bytes, seal_bytes, ...]}         on every store, in the order of the fields
    format    {format: 1, made_by, shape: {register_bytes: ..., ...}}   in a real store, before there is a head

Whoever makes the log chooses its shape, once. Everyone who opens it takes the shape from there, whatever its
own defaults are. `leaderless.core.limits` has what each process may choose for itself. The idea is
TigerBeetle's, which splits the options of a cluster from those of a process.
"""

from dataclasses import dataclass, fields, replace
from math import isqrt
from typing import Literal, get_args

Runs = Literal["json", "parquet"]


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(f"the shape of a log: {reason}")


@dataclass(frozen=True, slots=True)
class Shape:
    """What all processes of a log agree on. Raises `ValueError` for a bad relation.

    `register_bytes`: of one register at most, and of one line that carries two. Who cannot read so much cannot
        share the log.
    `seal_bytes`, `seal_entries`: a tail of the head that reaches one of them is full, and becomes a segment.
        Each commit writes the whole tail twice (`from` and `to`), so a longer tail costs bytes a commit; a
        shorter one costs two more messages for each segment.
    `segments_per_run`: so many segments are compacted together. More of them make larger registers, which
        must be read whole; fewer make more registers, and a longer index.
    `run_bytes`: a run whose segments have so many bytes takes no further one.
    `page_children`: so many runs, or pages of a level, become one page of the next level of the index. With
        more of them the index has fewer levels to descend, and a start reads more.
    `page_bytes`: about, of one part of a page. Larger parts are fewer; each must be read whole.
    `offset_registers`: the registers of committed offsets that nodes share. A reader reads all of them; those
        who write one make each other fail.
    `runs`: "json", or "parquet" where the store has files. Then a reader asks for a slice of a run,
        `run/A-B/OFFSET/KEY`, where it would read the run whole.
    """

    register_bytes: int = 1 << 26
    seal_bytes: int = 8_192
    seal_entries: int = 256
    segments_per_run: int = 16
    run_bytes: int = 1 << 19
    page_children: int = 16
    page_bytes: int = 1 << 18
    offset_registers: int = 1
    runs: Runs = "json"

    def __post_init__(self) -> None:
        _require(self.runs in get_args(Runs), f"runs are {' or '.join(get_args(Runs))}")
        numbers = [value for name, value in self.value.items() if name != "runs"]
        _require({*map(type, numbers)} == {int}, "a size is a whole number")
        _require(min(map(int, numbers)) >= 1, "nothing fits into no room")
        _require(self.offset_registers <= 1 << 16, "a reader reads all registers of offsets")
        _require(self.segments_per_run >= 2, "a run of one segment saves nothing")
        _require(self.page_children >= 2, "a page of one child saves nothing")
        _require(
            64 * self.page_bytes <= self.register_bytes,
            "all must be able to read a part of a page; a hash of keys does not make all parts equal",
        )
        _require(
            self.run_bytes < self.register_bytes or self.sliced,
            "all must be able to read a run, and its last segment comes on top",
        )

    @property
    def sliced(self) -> bool:
        """Whether a reader asks for slices of runs."""
        return self.runs == "parquet"

    @property
    def value(self) -> dict[str, int | str]:
        """By name, as the object `format` holds it; a head has the values alone."""
        return {name: getattr(self, name) for name in NAMES}

    def for_nodes(self, nodes: int) -> "Shape":
        """With about √N registers of committed offsets, rounded up, for a log that N nodes begin.

        With one for each node a reader pays two messages for each node; with one for all, their writes make
        each other fail. Any number is safe.
        """
        return replace(self, offset_registers=isqrt(max(1, nodes) - 1) + 1)

    def for_registers(self, register_bytes: int) -> "Shape":
        """With registers of at most `register_bytes`, which are 1 MiB or more."""
        if register_bytes >= self.register_bytes:
            return self
        return replace(
            self,
            register_bytes=register_bytes,
            seal_bytes=min(self.seal_bytes, register_bytes // 128),
            run_bytes=min(self.run_bytes, register_bytes // 2),
            page_bytes=min(self.page_bytes, register_bytes // 128),
        )


NAMES = tuple(each.name for each in fields(Shape))
