"""The shape of a log: what all who write it must agree on. It stands in the log and holds for all its life.

    head      {..., shape: [register_bytes, seal_bytes, ...]}         on every store, in the order of the fields
    format    {format: 5, made_by, shape: {register_bytes: ..., ...}}   in a real store, before there is a head

Whoever makes the log chooses its shape, once. Everyone who opens it takes the shape from there, whatever its
own defaults are. `leaderless.core.limits` has what each process may choose for itself. The idea is
TigerBeetle's, which splits the options of a cluster from those of a process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import isqrt
from reprlib import repr as brief
from typing import Any, Literal, get_args

Runs = Literal["json", "parquet"]
Compression = Literal["none", "zstd"]
LOG_FORMAT = 5  # in each object that has a `format`; earlier programs took 1 to 3 for other forms
FORMATS = (4, LOG_FORMAT)  # that this program reads: records of 4 have no times and no headers


def require_fields(owner: object, bound: str, holds: Callable[[Any], bool], *names: str) -> None:
    """Raise `ValueError` for the first of the fields `names` of `owner` whose value is out of its bound."""
    for name in names:
        value = getattr(owner, name)
        if not holds(value):
            raise ValueError(f"{name} must be {bound}, got {brief(value)}")


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
    `compression`: of segments, runs, pages and large values where they are stored; the bounds above are of
        JSON. A log without one does not say so: it has the fields that it had before there was one.

    `form`: the format of the log. It can rise, and is no part of what must agree.
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
    compression: Compression = "none"
    form: int = field(default=LOG_FORMAT, compare=False)

    def __post_init__(self) -> None:
        require_fields(self, "json or parquet", lambda runs: runs in get_args(Runs), "runs")
        require_fields(
            self, "none or zstd", lambda name: name in get_args(Compression), "compression"
        )
        whole = [name for name in NAMES if name not in ("runs", "compression")]
        bound = "a whole number of at least 1"
        require_fields(self, bound, lambda size: type(size) is int and size >= 1, *whole)
        # A run of one segment saves nothing, and neither does a page of one child.
        require_fields(
            self, "at least 2", lambda count: count >= 2, "segments_per_run", "page_children"
        )
        # A reader reads all of them.
        require_fields(self, "at most 65536", lambda count: count <= 1 << 16, "offset_registers")
        most = self.register_bytes // 64  # a hash of keys does not make all parts of a page equal
        bound = f"at most a 64th of register_bytes ({most})"
        require_fields(self, bound, lambda size: size <= most, "page_bytes")
        if not self.sliced:  # a run is read whole, and its last segment comes on top
            bound = f"below register_bytes ({self.register_bytes})"
            require_fields(self, bound, lambda size: size < self.register_bytes, "run_bytes")

    @property
    def sliced(self) -> bool:
        """Whether a reader asks for slices of runs."""
        return self.runs == "parquet"

    @property
    def compresses(self) -> bool:
        """Whether segments, runs, pages and large values are compressed."""
        return self.compression != "none"

    @property
    def value(self) -> dict[str, int | str]:
        """By name, as the object `format` holds it; a head has the values alone."""
        return {name: each for name in NAMES if (each := getattr(self, name)) != "none"}

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


NAMES = tuple(each.name for each in fields(Shape) if each.compare)
