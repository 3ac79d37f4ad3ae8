"""Each law at the store: a history of changes that breaks it, and the name that it must raise."""

from contextlib import suppress
from typing import Any

import orjson
import pytest

from leaderless.core.coordination import TOMBSTONE, InvariantBroken
from leaderless.core.shape import Runs, Shape
from leaderless.store.memory import MemoryStore
from leaderless.upkeep.fsck import check
from leaderless.upkeep.laws import Laws
from leaderless.upkeep.laws.lawful import Observer
from leaderless.upkeep.staged import LAST, seq_of

Change = tuple[str, Any]
pytestmark = pytest.mark.lawless  # of the stores that are judged here by themselves


def entry(writer: str, seq: int, key: str, first: int, *msgs: Any, **commits: int) -> list[Any]:
    """The entry of one batch, with messages of one key."""
    return [writer, seq, {key: [first, [*msgs]]}, commits]


def head(version: int, *entries: Any, **fields: Any) -> Change:
    """A value of the head register."""
    heading = {"state": "open", "epoch": 0, "sealed": 0, "base": 0, "size": 0, "by": "n"}
    return "head", heading | {"version": version, "shape": SHAPE, "entries": [*entries]} | fields


def segment(number: int, base: int, *entries: Any) -> Change:
    return f"segment/{number}", {"base": base, "entries": [*entries]}


def claim(epoch: int, owner: str | None = "w", beat: int = 0, name: str = "compaction") -> Change:
    notes = {"task": 0, "failures": 0, "dead": False}
    return f"claim/{name}", {"epoch": epoch, "owner": owner, "beat": beat} | notes


def index(epoch: int, cursor: int, *listed: list[int]) -> Change:
    return "compacted", {"format": 4, "epoch": epoch, "cursor": cursor, "listed": [*listed]}


def run(base: int, end: int, keys: Any, writers: Any, commits: Any = None) -> dict[str, Any]:
    commits = commits or {}
    return {"base": base, "end": end, "keys": keys, "commits": commits, "writers": writers}


def members(version: int, *names: str, **keys: Any) -> Change:
    alive = {name: [0, None, "x"] for name in names}
    return "group/g/members", {"version": version, "members": alive, "keys": keys}


def cursor(committed: int | None, epoch: int = 0, failures: int = 0) -> Change:
    return "group/g/cursor/k", {
        "committed": committed,
        "epoch": epoch,
        "failures": failures,
        "by": "x",
    }


def committed(slot: int, **offsets: int) -> Change:
    return "committed/0", {"format": 4, "slot": slot, "offsets": offsets}


def table(version: int, *files: list[Any], epoch: int = 0, start: Any = (0, 0, None)) -> Change:
    value = {"format": 4, "epoch": epoch, "version": version, "replaced": []}
    return "table", value | {"files": [*files], "start": [*start]}


def merged_file(first: int, last: int) -> list[Any]:
    return [
        f"merged/{first}-{last}-{0:016x}.parquet",
        1,
        first,
        last,
        2 * first,
        2 * last + 2,
        4,
        100,
        ["a", "b"],
    ]


SHAPE, OTHER_SHAPE, USUAL = ([*Shape(seal_entries=n).value.values()] for n in (1, 2, 256))
A, B, C, D = (entry("w", number, "a", number, number, a=number) for number in range(4))
SEALED = [head(1, A), head(2, A, B), segment(0, 0, A, B), head(3, C, sealed=1, base=2)]
TWICE = [*SEALED, head(4, C, D, sealed=1, base=2), segment(1, 2, C, D)]
RUN = run(0, 2, {"a": [0, [0, 1]]}, {"w": [1, {"a": 1}]}, {"a": 1})
SECOND = run(2, 4, {"a": [2, [2, 3]]}, {"w": [3, {"a": 3}]}, {"a": 3})
LISTED, NEXT = [0, 0, 0, 0, 2, 1, 80], [0, 1, 1, 2, 4, 1, 80]
NAMED = [*SEALED, claim(1), ("run/0-0", RUN), index(1, 0, LISTED)]
BOTH = [*TWICE, head(5, sealed=2, base=4), claim(1), ("run/0-0", RUN), ("run/1-1", SECOND)]
PAGE = run(0, 4, {"a": [0, 0, 2, 1, 4]}, {"w": [3, {"a": 3}]}, {"a": 3})
PAGE |= {"children": [LISTED, NEXT]}
ABOVE = [1, 0, 1, 0, 4, 1, 92]
ABOVE_NAME = "page/1/0-1/0-of-1"

WITH_TOKEN = entry("v", 0, "a", 0, 1, **{"\0a": 2})
CLOSING = entry("v", 0, "a", 0, 1, **{"\0a": (1 << 63) - 1})

LEASE: dict[str, Any] = {"epoch": 1, "owner": "w", "beat": 0}

LAWFUL: dict[str, list[Change]] = {
    "sealed": TWICE,
    "what the segment does not hold stays": [
        *SEALED[:2],
        segment(0, 0, A),
        head(3, B, sealed=1, base=1),
    ],
    "fenced and opened": [
        head(1, A),
        head(2, A, state="fenced", epoch=1),
        head(3, A, epoch=2),
        head(4, A, B, epoch=2),
    ],
    "compacted": [*NAMED, ("segment/0", TOMBSTONE), index(1, 1, LISTED)],
    "paged": [*BOTH, index(1, 0, LISTED, NEXT), (ABOVE_NAME, PAGE), index(1, 0, ABOVE)],
    "a lease changes hands": [claim(1), claim(1, beat=1), claim(2, "v"), claim(2, None), claim(3)],
    "a cursor": [
        members(1, "w", k=[1, "w", 0]),
        cursor(None, 1),
        cursor(None, 1, 1),
        cursor(4, 1),
    ],
    "a key changes hands": [
        members(1, "w", k=[1, "w", 0]),
        members(2, "w", k=[1, None, 0]),
        members(3, "w", "v", k=[2, "v", 0], l=[0, None, 7]),
        members(4, "w", k=[2, "v", 0], l=[0, None, 7]),
        members(5, "w", k=[3, "w", 0], l=[1, "w", 7]),
    ],
    "offsets leave for the log": [committed(0, a=1), *SEALED, committed(3, b=4)],
    "files": [claim(1, name="table"), table(1, merged_file(0, 1), epoch=1)],
    "files leave": [
        table(1, merged_file(0, 1), merged_file(2, 3)),
        table(2, merged_file(2, 3), start=(2, 4, f"starts/{0:016x}.json")),
    ],
}

PART = "sink/load/00000000000000000007/0-0/000000"
PLAN = "sink/load/00000000000000000007/plan"
DONE = entry("named/load", seq_of(7, LAST), "a", 0, 1)
NAME = f"0-1-{0:024x}"
DATA = {"$data": [NAME, 20_000, "json"]}
FORMAT = ("format", {"format": 4, "shape": Shape().value})

BROKEN: dict[str, tuple[str, list[Change]]] = {
    "a version that came before": ("HeadNeverReturns", [head(1, A), head(1, A, B)]),
    "a version that is left out": ("HeadNeverReturns", [head(1, A), head(3, A, B)]),
    "a head that is gone": ("HeadNeverReturns", [head(1, A), ("head", None)]),
    "an entry that changed": ("HeadNeverReturns", [head(1, A, B), head(2, B, A)]),
    "a float that became an integer": (
        "HeadNeverReturns",
        [head(1, entry("w", 0, "a", 0, 1.0)), head(2, entry("w", 0, "a", 0, 1))],
    ),
    "an entry that is gone": ("CommittedReadable", [head(1, A, B), head(2, A)]),
    "an offset that is left out": ("OffsetsDense", [head(1, A), head(2, A, C)]),
    "an offset that is given twice": (
        "OffsetsDense",
        [head(1, A), head(2, A, entry("v", 0, "a", 0, 5))],
    ),
    "a batch that comes again": (
        "AckedExactlyOnce",
        [head(1, A), head(2, A, entry("w", 0, "a", 1, 0))],
    ),
    "an append while fenced": (
        "NoAppendWhileFenced",
        [head(1, state="fenced", epoch=1), head(2, A, state="fenced", epoch=1)],
    ),
    "a token that falls": (
        "TokenNeverFalls",
        [
            head(1, WITH_TOKEN),
            head(2, WITH_TOKEN, entry("w", 0, "b", 0, 1, **{"\0a": 1})),
        ],
    ),
    "a message of a closed key": (
        "ClosedForEver",
        [head(1, CLOSING), head(2, CLOSING, entry("w", 0, "b", 0, 1), entry("x", 0, "a", 1, 1))],
    ),
    "an append that opens": ("NoAppendWhileFenced", [head(1, A), head(2, A, B, epoch=1)]),
    "a state without an epoch": ("NoAppendWhileFenced", [head(1, A), head(2, A, state="fenced")]),
    "an epoch that comes back": (
        "NoAppendWhileFenced",
        [head(1, A), head(2, A, epoch=2), head(3, A, epoch=1)],
    ),
    "a shape that changes": (
        "ShapeNeverChanges",
        [head(1, A), head(2, A, shape=OTHER_SHAPE, epoch=1)],
    ),
    "a shape that changes in `format`": (
        "ShapeNeverChanges",
        [FORMAT, ("format", FORMAT[1] | {"shape": Shape(runs="parquet").value})],
    ),
    "a head of another shape than `format`": ("ShapeNeverChanges", [FORMAT, head(1, A)]),
    "a `format` of another shape than the head": (
        "ShapeNeverChanges",
        [head(1, A), FORMAT],
    ),
    # The rule of the base commit: fullness belongs to the reader, and only numbers are compared.
    "a head that lets go of more than the segment holds": (
        "CommittedReadable",
        [head(1, A), segment(0, 0, A), head(2, A, B), head(3, C, sealed=1, base=2)],
    ),
    "a base that moves alone": ("CommittedReadable", [head(1, A, B), head(2, B, base=1)]),
    "a segment that is not there": (
        "CommittedReadable",
        [head(1, A), head(2, B, sealed=1, base=1)],
    ),
    "two segments at once": (
        "CommittedReadable",
        [head(1, A), segment(0, 0, A), head(2, B, sealed=2, base=1)],
    ),
    "what the segment does not hold, and is gone": (
        "CommittedReadable",
        [*SEALED[:2], segment(0, 0, A), head(3, sealed=1, base=1)],
    ),
    "a segment of other entries": ("SegmentsImmutable", [head(1, A, B), segment(0, 0, B)]),
    "a segment of a later tail": ("SegmentsImmutable", [head(1, A), segment(1, 1, B)]),
    "a segment that changes": ("SegmentsImmutable", [*SEALED, segment(0, 0, A)]),
    "a segment that is deleted whole": ("SegmentsImmutable", [*NAMED, ("segment/0", None)]),
    "a segment that is in no run": ("CommittedReadable", [*SEALED, ("segment/0", TOMBSTONE)]),
    "a run that nobody has named": (
        "CommittedReadable",
        [*NAMED[:-1], ("segment/0", TOMBSTONE)],
    ),
    "a run without a commit": ("SegmentsImmutable", [*SEALED, ("run/0-0", RUN | {"commits": {}})]),
    "a run with a later offset": (
        "SegmentsImmutable",
        [*SEALED, ("run/0-0", RUN | {"keys": {"a": [1, [0, 1]]}})],
    ),
    "a run that changes": ("SegmentsImmutable", [*NAMED, ("run/0-0", SECOND)]),
    "an index that names no run": ("CommittedReadable", [*SEALED, claim(1), index(1, 0, LISTED)]),
    "an index with a gap": ("IndexMatchesRuns", [*BOTH, index(1, 0, NEXT)]),
    "an index of other slots": (
        "IndexMatchesRuns",
        [*NAMED[:-1], index(1, 0, [*LISTED[:4], 3, 1, 60])],
    ),
    "an index that ends earlier": (
        "CommittedReadable",
        [*BOTH, index(1, 0, LISTED, NEXT), index(1, 0, LISTED)],
    ),
    "an index of no epoch": ("OneLiveClaim", [*NAMED[:-1], index(2, 0, LISTED)]),
    "an index of an older worker": (
        "OneLiveClaim",
        [*NAMED, claim(2), index(2, 0, LISTED), index(1, 0, LISTED)],
    ),
    "a cursor that passes what is compacted": (
        "CursorNeverPassesCompacted",
        [*NAMED, ("segment/0", TOMBSTONE), index(1, 2, LISTED)],
    ),
    "a cursor that passes the living": (
        "CursorNeverPassesCompacted",
        [*NAMED, index(1, 1, LISTED)],
    ),
    "a cursor that moves back": (
        "CursorNeverMovesBack",
        [*NAMED, ("segment/0", TOMBSTONE), index(1, 1, LISTED), index(1, 0, LISTED)],
    ),
    "a page without a part": ("CommittedReadable", [*BOTH, index(1, 0, ABOVE)]),
    "a page whose commit is too low": (
        "IndexMatchesRuns",
        [*BOTH, (ABOVE_NAME, PAGE | {"commits": {"a": 1}}), index(1, 0, ABOVE)],
    ),
    "a page of the parts of another": (
        "IndexMatchesRuns",
        [
            *BOTH,
            ("page/1/0-1/0-of-2", PAGE),
            ("page/1/0-1/1-of-2", PAGE),
            index(1, 0, [*ABOVE[:5], 2, 60]),
        ],
    ),
    "a page that changes": (
        "SegmentsImmutable",
        [(ABOVE_NAME, PAGE), (ABOVE_NAME, PAGE | {"commits": {}})],
    ),
    "a claim that is stolen": ("OneLiveClaim", [claim(1), claim(1, "v")]),
    "a claim that a stale worker releases": ("OneLiveClaim", [claim(2), claim(1, None)]),
    "a claim that is released in another epoch": ("OneLiveClaim", [claim(1), claim(2, None)]),
    "a beat that comes back": ("OneLiveClaim", [claim(1, beat=1), claim(1)]),
    "a key that is stolen": (
        "OneLiveClaim",
        [members(1, "w", "v", k=[1, "w", 0]), members(2, "v", k=[1, "v", 0])],
    ),
    "a key of the living": (
        "OneLiveClaim",
        [members(1, "w", "v", k=[1, "w", 0]), members(2, "w", "v", k=[2, "v", 0])],
    ),
    "a key whose epoch comes back": (
        "OneLiveClaim",
        [members(1, "w", k=[2, "w", 0]), members(2, "w", k=[1, "w", 0])],
    ),
    "a key that nobody wants any more": (
        "InterestKept",
        [members(1, "w", k=[2, "w", 0]), members(2, "w")],
    ),
    "a key that begins elsewhere": (
        "InterestKept",
        [members(1, "w", k=[2, "w", 0]), members(2, "w", k=[2, "w", 5])],
    ),
    "a cursor of no epoch": ("OneLiveClaim", [cursor(None, 1)]),
    "a cursor of an older member": (
        "OneLiveClaim",
        [members(1, "w", k=[2, "w", 0]), cursor(None, 2), cursor(3, 1)],
    ),
    "a cursor that falls": ("CommitsKept", [cursor(3), cursor(2)]),
    "a cursor that is lost": ("CommitsKept", [cursor(0), cursor(None)]),
    "a failure that counts twice": ("FailuresCounted", [cursor(3), cursor(3, failures=2)]),
    "a failure that is forgotten": (
        "FailuresCounted",
        [cursor(3), cursor(3, failures=1), cursor(3)],
    ),
    "members that came before": ("ValueNeverReturns", [members(1), members(3)]),
    "a committed offset that falls": ("CommitsKept", [committed(0, a=2), committed(0, a=1)]),
    "a committed offset that is in no log": (
        "CommitsKept",
        [*SEALED, committed(0, a=9), committed(3)],
    ),
    "a committed offset that is in a later log": (
        "CommitsKept",
        [*SEALED, committed(0, a=2), committed(2)],
    ),
    "a slot that falls": ("CommitsKept", [*SEALED, committed(3), committed(2)]),
    "a slot that the log does not have": ("CommitsKept", [*SEALED, committed(4)]),
    "a table that came before": ("ValueNeverReturns", [table(1), table(3)]),
    "a table of no epoch": ("OneLiveClaim", [table(1, epoch=1)]),
    "a table with a gap": (
        "RegistersReadable",
        [table(1, merged_file(0, 1), merged_file(3, 4))],
    ),
    "a table that ends earlier": (
        "CommittedReadable",
        [table(1, merged_file(0, 1)), table(2)],
    ),
    "a plan that changes": (
        "PlanKept",
        [(PLAN, {"format": 4, "parts": [PART]}), (PLAN, {"format": 4, "parts": ["b"]})],
    ),
    "a plan that is deleted": ("PlanKept", [(PLAN, {"format": 4, "parts": [PART]}), (PLAN, None)]),
    "a plan of condemned parts": (
        "PlanKept",
        [(PLAN, {"format": 4, "condemned": [PART]}), (PLAN, {"format": 4, "parts": [PART]})],
    ),
    "a value of a record that is deleted": (
        "DataReadable",
        [
            FORMAT,
            (f"data/{NAME}", True),
            head(1, entry("w", 0, "a", 0, DATA), shape=USUAL),
            (f"data/{NAME}", None),
        ],
    ),
    "a value that is gone before its record comes": (
        "DataReadable",
        [
            FORMAT,
            (f"data/{NAME}", True),
            (f"data/{NAME}", None),
            head(1, entry("w", 0, "a", 0, DATA), shape=USUAL),
        ],
    ),
    "what nobody can have written": ("RegistersReadable", [("head", {"version": 1})]),
    "a claim of no epoch": ("RegistersReadable", [claim(0, None)]),
    "a claim without its notes": ("RegistersReadable", [("claim/compaction", LEASE)]),
    "a group's key of no epoch": ("RegistersReadable", [members(1, "w", k=[0, "w", 0])]),
}


# What only a change shows: in the state after it nothing is wrong.
OF_A_STEP = {
    "a version that came before",
    "a version that is left out",
    "a head that is gone",  # and nothing else was there
    "a float that became an integer",
    "an entry that is gone",
    "an append while fenced",
    "an append that opens",
    "a state without an epoch",
    "an epoch that comes back",
    "a shape that changes in `format`",
    "what the segment does not hold, and is gone",
    "an index that ends earlier",
    "an index of an older worker",
    "a cursor that moves back",
    "a page that changes",  # no index names it
    "a claim that is stolen",
    "a claim that a stale worker releases",
    "a claim that is released in another epoch",
    "a beat that comes back",
    "a key that is stolen",
    "a key of the living",
    "a key whose epoch comes back",
    "a key that nobody wants any more",
    "a key that begins elsewhere",
    "a cursor of an older member",
    "a cursor that falls",
    "a cursor that is lost",
    "a failure that counts twice",
    "a failure that is forgotten",
    "members that came before",
    "a committed offset that falls",
    "a committed offset that is in no log",
    "a committed offset that is in a later log",
    "a slot that falls",
    "a table that came before",
    "a table that ends earlier",
    "a plan that is deleted",
}
# A state shows these by another name, or when the index names the run.
SHOWN_AS = {
    "an entry that changed": {"AckedExactlyOnce", "OffsetsDense"},
    "a segment that changes": {"CommittedReadable", "OffsetsDense"},
    "a run that changes": {"IndexMatchesRuns"},
    "a plan that changes": {"RegistersReadable"},
    "a plan of condemned parts": {"RegistersReadable"},
}
UNNAMED = {"a run without a commit", "a run with a later offset"}


def judged(changes: list[Change]) -> Laws:
    laws = Laws()
    for key, value in changes:
        laws.changed(key, value)
    return laws


@pytest.mark.parametrize("history", LAWFUL)
def test_what_programs_do_is_lawful(history: str) -> None:
    judged(LAWFUL[history])


@pytest.mark.parametrize("history", BROKEN)
def test_each_law_is_raised_by_name(history: str) -> None:
    name, changes = BROKEN[history]
    *before, (key, value) = changes
    laws = judged(before)
    with pytest.raises(InvariantBroken) as raised:
        laws.changed(key, value)
    assert str(raised.value).startswith(f"{name}: ")


async def findings_of(changes: list[Change]) -> set[str]:
    """The names of what `fsck` finds in the state after these changes."""
    runs: Runs = "parquet" if "table" in dict(changes) else "json"
    shape = Shape(seal_entries=1, runs=runs).value
    state = dict([("format", {"format": 4, "shape": shape}), *changes])
    store = MemoryStore()
    for key, value in state.items():
        if value is not None:
            await store.write(key, orjson.dumps(value))
    return {finding.invariant for finding in (await check(store)).findings}


@pytest.mark.anyio
@pytest.mark.parametrize("history", [name for name in LAWFUL if "files" not in name])
async def test_in_what_programs_do_nothing_is_found(history: str) -> None:
    assert await findings_of(LAWFUL[history]) == set()


@pytest.mark.anyio
@pytest.mark.parametrize("history", BROKEN)
async def test_what_a_state_shows_is_found_by_the_same_name(
    history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)
    name, changes = BROKEN[history]
    found = await findings_of(
        [*changes, claim(1), index(1, 0, LISTED)] if history in UNNAMED else changes
    )
    if history in OF_A_STEP:
        assert found == set()
    else:
        assert found >= SHOWN_AS.get(history, {name})


@pytest.mark.anyio
async def test_a_head_that_is_gone_is_found_by_its_segments() -> None:
    assert "HeadNeverReturns" in await findings_of([*SEALED, ("head", None)])


def test_the_plan_of_an_epoch_that_is_over_may_go() -> None:
    judged([(PLAN, {"format": 4, "parts": [PART]}), head(1, DONE), (PLAN, None)])


# ---------------------------------------------------------------- a store that tells them


def test_an_observer_keeps_each_topic_apart_and_the_first_that_is_broken() -> None:
    observer = Observer()
    for number, place in ((1, ""), (1, "topic/a/"), (1, "topic/b/"), (2, "topic/a/")):
        observer.changed(f"{place}head", orjson.dumps(head(number, A)[1]))
    observer.changed("mine", b"whatever is no object of a log")
    for number in (7, 9):
        with suppress(InvariantBroken):
            observer.changed("head", orjson.dumps(head(number, A)[1]))
    assert "version 7 after 1" in str(observer.broken)
