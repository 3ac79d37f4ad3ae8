"""What must hold in any state of a log: for each change (`laws`), and for a check of a whole log (`fsck`).

A rule tells `Broken` what is wrong. `raising` makes an exception of it.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import NoReturn, TypeVar

import orjson

from leaderless.core.claims import Claim
from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.headlog.conditions import CLOSED, token_of
from leaderless.core.headlog.index import (
    Index,
    IndexEntry,
    Page,
    Part,
    new_page,
    part_of,
    size_of_run,
)
from leaderless.core.headlog.records import Run, Segment, Writers
from leaderless.core.headlog.view import TOKEN
from leaderless.core.messages import Block, Offsets, Times
from leaderless.core.shape import Shape
from leaderless.groups.members import Tenure

Broken = Callable[[str, str], object]  # is told an invariant, and what is wrong
INDEXED, IMMUTABLE = "IndexMatchesRuns", "SegmentsImmutable"
PASSED = "CursorNeverPassesCompacted"
T = TypeVar("T")
Parts = list[Part]  # of one entry of the index: all of them, or none
Changes = tuple[Iterable[str], Offsets]  # the keys to which something appends, and what it commits
Walk = Generator[Sequence[IndexEntry], Sequence[Sequence[Part | None]], list[Parts]]


def raising(invariant: str, text: str) -> NoReturn:
    """A `Broken` that ends whatever breaks a rule."""
    raise InvariantBroken(f"{invariant}: {text}")


def require(holds: bool, invariant: str, *what: object) -> None:
    """Raise `InvariantBroken` unless it holds."""
    if not holds:
        raising(invariant, " ".join(map(str, what)))


_text_of = partial(orjson.dumps, option=orjson.OPT_SORT_KEYS, default=list)


def is_same(one: object, other: object) -> bool:
    """Whether two values of JSON are one: `1`, `1.0` and `true`, which are equal in Python, are three."""
    return one == other and _text_of(one) == _text_of(other)


class Order:
    """The order of the log up to some slot: where each key ends, and the newest batch of each writer."""

    def __init__(self, ends: dict[str, int] | None = None) -> None:
        self.ends: dict[str, int] = ends or {}
        self.newest: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.time: int | None = None

    def take_blocks(self, blocks: Iterable[tuple[str, int, int]], broken: Broken) -> None:
        """Key, first offset and number of messages of the blocks that come next."""
        for key, first, count in blocks:
            end = self.ends.get(key, 0)
            if first != end:
                broken("OffsetsDense", f"key {key!r} has offset {first} after {end - 1}")
            self.ends[key] = first + count

    def take_batches(self, batches: Iterable[tuple[str, int]], broken: Broken) -> None:
        """Writer and number of the batches that come next."""
        for writer, seq in batches:
            newest = self.newest.get(writer, -1)
            if seq <= newest:
                broken("AckedExactlyOnce", f"batch {seq} of {writer} after its batch {newest}")
            self.newest[writer] = seq

    def take_tokens(self, entries: Iterable[Changes], broken: Broken) -> None:
        """The entries that come next: none has a token below that of its key, or a message of a closed key."""
        for appended, commits in entries:
            for key in appended:
                if self.tokens.get(token_of(key)) == CLOSED:
                    broken("ClosedForEver", f"key {key!r} is closed, and grows")
            for name, number in commits.items():
                if name.startswith(TOKEN):
                    known = self.tokens.get(name, number)
                    if number < known:
                        text = f"key {name[1:]!r} has the token {number} after {known}"
                        broken("TokenNeverFalls", text)
                    self.tokens[name] = number

    def take_times(self, times: Iterable[int | None], broken: Broken) -> None:
        """The times of the entries that come next: none is below the one before, or missing after one."""
        for time in times:
            if self.time is not None and (time is None or time < self.time):
                broken("TimeRises", f"an entry of the time {time} after one of {self.time}")
            self.time = time


# ---------------------------------------------------------------- head and segments


def require_shape(known: Shape | None, shape: Shape | None, broken: Broken) -> None:
    """The head and `format` say one shape, and go on saying it; `known`: None before either of them."""
    if known not in (None, shape):
        broken("ShapeNeverChanges", f"the shape was {known}, is {shape}")


def require_sealing(
    number: int, base: int, entries: Sequence[T], head: tuple[int, int, Sequence[T]], broken: Broken
) -> None:
    """A segment that the head has not let go of holds the first entries of its tail.

    `head`: how many segments it has let go of, its first slot, and its tail.
    """
    sealed, first, tail = head
    if (number, base) != (sealed, first) or not entries:
        text = f"segment {number} of slot {base} is made when {sealed} is next, of {first}"
        broken(IMMUTABLE, text)
    elif not is_same(entries, tail[: len(entries)]):
        text = f"segment {number} has {len(entries)} entries that the tail does not begin with"
        broken(IMMUTABLE, text)


def require_deletable(number: int, sealed: int, broken: Broken) -> None:
    """A segment that is deleted is in a run of the index, which has those below `sealed`."""
    if number >= sealed:
        text = f"segment {number} is deleted, and only those below {sealed} are in runs"
        broken("CommittedReadable", text)


def require_left_out(slot: int, end: int, broken: Broken) -> None:
    """What a register of committed offsets has left out is in the log, below `slot`; that ends at `end`."""
    if slot > end:
        broken("CommitsKept", f"what is left out is below slot {slot}, and the log ends at {end}")


# ---------------------------------------------------------------- runs, pages, and the index


def require_index(index: Index, alive: Iterable[int], broken: Broken) -> None:
    """Runs and pages follow each other, and segments below the cursor are deleted; `alive` are not."""
    require_order(index.listed, 0, 0, broken)
    if index.cursor > index.sealed:
        text = f"segments below {index.cursor} are deleted, those below {index.sealed} in runs"
        broken(PASSED, text)
    if passed := [number for number in alive if number < index.cursor]:
        broken(PASSED, f"the cursor {index.cursor} has passed segments that are alive: {passed}")


def require_order(listed: Sequence[IndexEntry], first: int, base: int, broken: Broken) -> None:
    """Runs and pages follow each other without a gap, from segment `first` and slot `base` on."""
    before = IndexEntry(0, 0, first - 1, 0, base, 1, 0)
    for one, other in pairwise((before, *listed)):
        if (one.last + 1, one.end) != (other.first, other.base):
            text = f"after segment {one.last} and slot {one.end - 1} comes {other.register()}, "
            broken(INDEXED, f"{text}of slot {other.base}")


def require_held(
    segment: Segment, blocks: Mapping[str, tuple[int, Sequence[Json]]], broken: Broken
) -> None:
    """The messages of a segment stand in its run, too, which has `blocks`."""
    for key, (first, messages) in merged([segment]).keys.items():
        start, found = blocks.get(key, (first, ()))
        at = first - start
        if at < 0 or not is_same([*found[at : at + len(messages)]], messages):
            text = (
                f"key {key!r} from offset {first} is not as in the segment of slot {segment.base}"
            )
            broken(IMMUTABLE, text)


def require_run(run: Run, segments: Sequence[Segment], count: int, broken: Broken) -> None:
    """A run is what its `count` segments make; `segments`: those that still stand."""
    for writer, (seq, firsts) in run.writers.items():
        if wrong := [key for key, first in firsts.items() if not run.holds(key, first)]:
            broken(INDEXED, f"batch {seq} of {writer} stands in no message of {wrong}")
    if len(segments) == count:
        made = merged(segments)
        parts = zip(Run._fields, run, made, strict=True)
        if wrong := [name for name, one, other in parts if not is_same(one, other)]:
            broken(IMMUTABLE, f"it is not what its segments make: {wrong}")
        return
    for segment in segments:
        require_held(segment, run.keys, broken)


def walk(listed: Sequence[IndexEntry], known: set[IndexEntry], of: Callable[[str], Broken]) -> Walk:
    """Check pages, and all that is below them; return the parts of `listed`, none where some are not right.

    Yields entries of the index, and is sent the parts of each: up to the first that is missing, which is
    None; none of a file, which no register holds. `known`: entries that are right; those below are not
    looked at again. `of`: what is told of a register.
    """
    sent = yield listed
    found = [_right_parts(each, parts, of) for each, parts in zip(listed, sent, strict=True)]
    for each, parts in zip(listed, found, strict=True):
        if each.level and parts and each not in known:
            yield from _walk_page(each, parts, known, of)
    known.update(listed)
    return found


def _right_parts(
    listed: IndexEntry, parts: Sequence[Part | None], of: Callable[[str], Broken]
) -> Parts:
    right: Parts = []
    for name, part in zip(listed.registers, parts, strict=False):
        if part is None:
            of(name)("CommittedReadable", "the index names it, and it is no part of it")
        elif isinstance(part, Page) != (listed.level > 0):
            of(name)(INDEXED, f"it is no {'page' if listed.level else 'run'}")
        else:
            right.append(part)
            if (part.base, part.end) != (listed.base, listed.end):
                text = f"it has slots {part.base} to {part.end - 1}, and the index says "
                of(name)(INDEXED, f"{text}{listed.base} to {listed.end - 1}")
    if len(right) < listed.parts:
        return []
    size = sum(size_of_run(part) if isinstance(part, Run) else part.size for part in right)
    if size != listed.size:
        text = f"it has the size {size}, and what lists it says {listed.size}"
        of(listed.register())(INDEXED, text)
    return right


def _walk_page(
    listed: IndexEntry, pages: Parts, known: set[IndexEntry], of: Callable[[str], Broken]
) -> Generator[Sequence[IndexEntry], Sequence[Sequence[Part | None]], None]:
    children = pages[0].children if isinstance(pages[0], Page) else []
    broken = of(listed.register())
    require_order(children, listed.first, listed.base, broken)
    if [(each.last, each.end) for each in children[-1:]] != [(listed.last, listed.end)]:
        broken(INDEXED, f"{listed} ends with {children[-1:]}")
        return
    below = yield from walk(children, known, of)
    if not all(below):
        return
    for number, expected in enumerate(pages_of([*zip(children, below, strict=True)], listed.parts)):
        if pages[number] != expected:
            of(listed.register(number))(INDEXED, "it is not what its children make")


def merged(segments: Sequence[Segment]) -> Run:
    """The run of these segments; see `leaderless.core.headlog.records.merge`."""
    keys: dict[str, Block] = {}
    commits: dict[str, int] = {}
    writers: Writers = {}
    times: dict[str, Times] = {}
    for writer, seq, appends, committed, time in chain(*(each.entries for each in segments)):
        writers[writer] = seq, {key: first for key, (first, _) in appends.items()}
        for key, (first, messages) in appends.items():
            keys.setdefault(key, (first, []))[1].extend(messages)
            if time is not None and time not in {at for _, at in times.get(key, [])[-1:]}:
                times.setdefault(key, []).append((first, time))
        for key, offset in committed.items():
            commits[key] = max(offset, commits.get(key, 0))
    return Run(segments[0].base, segments[-1].end, keys, commits, writers, times)


def pages_of(children: Sequence[tuple[IndexEntry, Sequence[Part]]], parts: int) -> list[Page]:
    """What the parts of the page above these children hold; see `leaderless.core.headlog.index.distribute`."""
    pages = [new_page([listed for listed, _ in children]) for _ in range(parts)]
    for place, (_, sources) in enumerate(children):
        for source in sources:
            for key, first, end in source.ranges():
                record = pages[part_of(key, parts)].keys.setdefault(key, [first])
                record += [place, end]
            for key, offset in source.commits.items():
                commits = pages[part_of(key, parts)].commits
                commits[key] = max(offset, commits.get(key, 0))
            for writer, newest in source.writers.items():
                pages[part_of(writer, parts)].writers[writer] = newest
    return pages


# ---------------------------------------------------------------- claims


def require_claimed(
    epoch: int, register: str, claim: Claim | Tenure | None, broken: Broken
) -> None:
    """Something was changed in an epoch that somebody has claimed. A new claim has the next epoch."""
    claimed = claim.epoch if claim else 0
    if epoch > claimed:
        text = f"it was changed in epoch {epoch}, and {register} has had {claimed} only"
        broken("OneLiveClaim", text)
