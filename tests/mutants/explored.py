"""Which mutants of the leaderless log die when all schedules of a small cluster are searched.

`schedules.json` keeps a short schedule of each. `python -m tests.mutants.explored` writes their table in
docs/mutants.md; `python -m tests.mutants.explorer --search` searches.

Each has settings in which its rule can matter, the cheapest first. A setting is searched whole at first, then
within small bounds on delays, then with one seed after the other: see `Search`. What needs more than a setting
has is out of reach, with the reason.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from performance.harness import replace_section, table_lines
from simulation.exploration.campaign import explored
from simulation.exploration.events import Event
from simulation.exploration.search import Failed
from simulation.exploration.setting import Setting
from simulation.exploration.telling import played
from tests.mutants.cases import NODE
from tests.mutants.kill import PAGE
from tests.mutants.mutant import Mutant

SCHEDULES = Path(__file__).with_name("schedules.json")
CPU_S_MAX = 30.0  # of one setting
FIRST_CPU_S = 5.0  # of the search without a seed, and of all with a bound on delays
DELAYS_MAX = 4
SEED_CPU_S = 0.3  # of the search with a seed
ALL = {mutant.name: mutant for mutant in (*NODE["log"], *NODE["harder"])}

ONE = Setting(nodes=1, sends=1, polls=0)
LOST = Setting(nodes=1, sends=1, polls=0, lost=1)
REBORN = Setting(nodes=1, sends=2, polls=0, crashes=1)
RIVALS = Setting(polls=0)
HANDED = Setting(hand_over=True)
HANDED_LATE = Setting(hand_over=True, polls=0, late=1)
HANDED_LOST = Setting(hand_over=True, polls=0, lost=1)
HANDED_ONCE_MORE = Setting(before=2, sends=1, polls=0, hand_over=True, late=1)
FENCED = Setting(nodes=1, before=1, sends=1, polls=0, fence=1)
FENCED_LOST = Setting(nodes=1, before=1, sends=1, polls=0, fence=1, lost=1)
FENCED_LATE = Setting(nodes=1, before=1, sends=1, polls=0, fence=1, late=1)
FENCED_RIVALS = Setting(before=1, sends=2, polls=0, fence=1, hand_over=True)
HANDED_FENCED = Setting(before=1, sends=1, polls=0, fence=1, hand_over=True)
HANDED_FENCED_LATE = Setting(before=1, sends=1, polls=0, fence=1, hand_over=True, late=1)
COMPACTED = Setting(nodes=1, before=2, sends=1, polls=1, compaction=True)
READ_BACK = Setting(before=3, sends=0, polls=1, compaction=True)
READ_AGAIN = Setting(nodes=1, before=3, sends=0, polls=1, compaction=True, crashes=1)
PAGED = Setting(nodes=1, before=5, sends=1, polls=0, compaction=True)
SEALED = Setting(polls=0, compaction=True)
WORKER_DIES = Setting(nodes=1, before=2, sends=1, polls=0, compaction=True, crashes=1)
TWO_WORKERS = Setting(before=2, sends=1, polls=0, compaction=True, crashes=1)
SLOW_WORKER = Setting(before=2, sends=1, polls=0, compaction=True, late=1)
STALE_WORKER = Setting(before=2, sends=2, polls=0, compaction=True, late=1)
STALE_WORKERS = Setting(before=2, sends=3, polls=0, compaction=True, late=1)
DOUBLED_REBORN = Setting(
    before=3, sends=2, polls=0, compaction=True, hand_over=True, crashes=1, duplicates=1
)
COMMIT = Setting(sends=0, polls=0, commits=1)
COMMITS_SHARED = Setting(nodes=3, sends=0, polls=0, commits=3)  # n0 and n2 share a register
COMMITS_OF_TWO = Setting(sends=0, polls=0, commits=3)  # the first register holds the highest
COMMITS_REBORN_LATE = Setting(nodes=1, sends=0, polls=0, commits=2, crashes=1, late=1)
COMMIT_LOST = Setting(sends=0, polls=0, commits=1, lost=1)
DEFERRED = Setting(nodes=1, sends=0, polls=0, commits=2, deferred=True)
DEFERRED_FENCED = Setting(sends=0, polls=0, commits=1, fence=1, late=1, deferred=True)
DEFERRED_RUNS = Setting(nodes=4, sends=3, polls=0, commits=2, deferred=True, compaction=True)
DEFERRED_TWO_RUNS = Setting(
    before=1, sends=4, polls=0, commits=2, deferred=True, compaction=True, crashes=1
)
DEFERRED_SKIPPED = Setting(
    nodes=4, before=1, sends=4, polls=0, commits=2, deferred=True, compaction=True
)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "dedup-skipped": (LOST, HANDED_LATE, HANDED_ONCE_MORE),
    "ack-before-commit": (ONE,),
    "unknown-is-success": (LOST,),
    "unknown-is-failure": (LOST, RIVALS, HANDED_LOST, HANDED_LATE),
    "new-id-after-commit-failed": (LOST, RIVALS, HANDED_LATE),
    "new-id-after-hand-over": (HANDED, HANDED_LATE, HANDED_ONCE_MORE),
    "answer-is-commit": (HANDED, HANDED_ONCE_MORE),
    "writer-reused": (REBORN,),
    "blind-put": (RIVALS,),
    "offsets-per-batch": (Setting(nodes=1, sends=4, polls=0, lost=1),),
    "older-head-taken": (Setting(), HANDED),
    "entries-reversed": (Setting(nodes=3, before=2, sends=0),),
    "fence-ignored": (HANDED_FENCED,),
    "epoch-ignored": (FENCED, FENCED_LATE, FENCED_RIVALS),
    "epoch-kept": (HANDED_FENCED_LATE,),
    "old-batch-kept-alive": (FENCED, FENCED_RIVALS),
    "switch-of-unknown-outcome": (FENCED_LOST,),
    "seal-skipped": (SEALED,),
    "seal-cut-short": (SEALED, READ_AGAIN),
    "delete-before-listing": (COMPACTED, READ_BACK, TWO_WORKERS),
    "run-without-writers": (DOUBLED_REBORN,),
    "index-newer-than-head": (Setting(nodes=6, before=3, sends=2, compaction=True),),
    "stale-worker-takes-over": (STALE_WORKERS,),
    "page-without-a-child": (PAGED,),
    "page-before-it-is-written": (PAGED,),
    "index-put": (STALE_WORKER,),
    "claim-in-the-old-epoch": (WORKER_DIES,),
    "claim-of-the-living": (SLOW_WORKER, TWO_WORKERS),
    "older-read-joined": (Setting(sends=1, polls=1, commits=1),),
    "poll-skips": (Setting(nodes=1, sends=1),),
    "answered-late": (Setting(nodes=1, sends=1, polls=0, late=6),),
    "commit-of-a-key-lost": (DEFERRED,),
    "commit-goes-back": (Setting(polls=0, commits=2, deferred=True),),
    "acknowledged-before-written": (Setting(nodes=1, sends=0, polls=0, commits=1, crashes=1),),
    "committed-register-replaced": (COMMITS_REBORN_LATE,),
    "commits-of-one-register": (COMMIT,),
    "call-numbers-reused": (REBORN,),
    "commits-stay-after-a-refusal": (DEFERRED_FENCED,),
    "commits-stay-after-a-reject": (DEFERRED_FENCED,),
    "run-keeps-the-last-commit": (DEFERRED_RUNS,),
    "outline-keeps-the-last-commit": (DEFERRED_TWO_RUNS,),
    "outline-lowers-a-commit": (DEFERRED_SKIPPED,),
    "committed-register-lowered": (COMMITS_OF_TWO,),
    "unknown-write-acknowledged": (COMMIT_LOST,),
    "overtaken-write-acknowledged": (COMMITS_SHARED,),
    "stale-release": (STALE_WORKER,),
    "index-epoch-kept": (SLOW_WORKER, COMPACTED),
    "segments-never-deleted": (COMPACTED, READ_BACK),
    "compaction-stops-before-the-cursor": (WORKER_DIES,),
}
MEMORY = "nothing is evicted from a memory of the usual size"
KEYS = "it needs several keys, and a search has one"
BYTES = "it needs messages near a limit in bytes"
LATENCY = "it is about round trips and pauses, and messages here are faster than any timer"
FRESHNESS = "with a freshness bound of 0, as here, a poll waits for a read of its own in any case"
OUT_OF_REACH = {
    "confirmed-when-answered": FRESHNESS,
    "confirmed-when-handed-back": FRESHNESS,
    "older-look-of-a-peer": FRESHNESS,
    "held-until-now": FRESHNESS,
    "evicted-beyond-the-runs": MEMORY,
    "key-in-the-wrong-part": KEYS,
    "commits-dropped-too-early": "it needs more keys than a register of committed offsets keeps",
    "three-commits-a-batch": KEYS,
    "three-commits-a-write": KEYS,
    "page-keeps-the-last-commit": "it needs a page, and commits between its runs: ten requests or more",
    "commits-stay-when-left-alone": "a batch is left alone only after seconds of silence",
    "answer-beyond-the-view": BYTES,
    "all-in-one-commit": BYTES,
    "whole-log-in-an-answer": BYTES,
    "compaction-gives-up": "it needs several crashes of workers in a row",
    "read-ahead-seals-nothing": LATENCY,
    "tried-head-sealed": LATENCY,
    "store-timeout-fixed": LATENCY,
    "sent-back-for-ever": "it needs three nodes, two of which are cut off from the third",
    "refused-without-a-pause": "the store of a search refuses nothing",
}


class Kept(NamedTuple):
    """How a mutant fails: the law, the setting, and the schedule."""

    law: str
    setting: Setting
    schedule: tuple[Event, ...]


def kept() -> dict[str, Kept]:
    """The failures of `schedules.json`, by mutant."""
    lines = json.loads(SCHEDULES.read_text(encoding="utf-8"))
    return {
        name: Kept(law, Setting(**options), tuple(Event(*each) for each in schedule))
        for name, (law, options, schedule) in lines.items()
    }


def keep(failures: Mapping[str, Kept]) -> None:
    """Write `schedules.json`, a line for each mutant."""
    lines = [
        f"{json.dumps(name)}: {json.dumps([law, setting.as_object(), schedule])}"
        for name, (law, setting, schedule) in sorted(failures.items())
    ]
    SCHEDULES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def look_for(name: str, cpu_s_max: float = CPU_S_MAX) -> Kept | None:
    """Search the settings of a mutant until a schedule fails, each for so many seconds of CPU."""
    for setting in SETTINGS[name]:
        if failed := _found(ALL[name], setting, cpu_s_max):
            require_sound(setting, failed.schedule)
            return Kept(failed.name, setting, failed.schedule)
    return None


def _found(mutant: Mutant, setting: Setting, cpu_s_max: float) -> Failed | None:
    for seed, delays, cpu_s in _searches(cpu_s_max):
        with mutant.alive():
            campaign = explored(setting, cpu_s_max=cpu_s, seed=seed, delays=delays)
        if campaign.failed or (campaign.done and delays is None):
            return campaign.failed
    return None


def _searches(cpu_s_max: float) -> Iterator[tuple[int | None, int | None, float]]:
    """The searches of a setting: the seed, the bound on delays, the seconds of CPU."""
    first_s = min(FIRST_CPU_S, cpu_s_max / 2)
    yield None, None, first_s
    for delays in range(1, DELAYS_MAX + 1):
        yield None, delays, first_s / DELAYS_MAX
    for seed in range(round((cpu_s_max - 2 * first_s) / SEED_CPU_S)):
        yield seed, None, SEED_CPU_S


def require_sound(setting: Setting, schedule: Sequence[Event]) -> None:
    """Play a schedule with the right core, as far as it can happen there; it must not fail."""
    failed = played(setting, schedule).failed
    assert failed is None, f"the right core fails, too: {setting.command()}: {failed}"


TITLES = ("what", "caught by", "events")


def table() -> list[str]:
    """The mutants with the shortest schedule that is known, and the others with a reason."""
    failures = kept()
    rows = (row(name, failures[name]) for name in SETTINGS if name in failures)
    found = f"{len(failures)} of {len(ALL)} found. Out of reach of a search:"
    return [*table_lines(TITLES, rows), "", found, "", *_by_reason(OUT_OF_REACH)]


def row(name: str, failure: Kept) -> list[str]:
    """A line of the table."""
    return [f"`{name}`", f"`{failure.law}`", str(len(failure.schedule))]


def _by_reason(reasons: Mapping[str, str]) -> Iterator[str]:
    """Each reason, and the mutants that have it."""
    for reason in dict.fromkeys(reasons.values()):
        names = ", ".join(f"`{name}`" for name, its in reasons.items() if its == reason)
        yield from wrap(
            f"- {names}: {reason}.", 116, subsequent_indent="  ", break_on_hyphens=False
        )


if __name__ == "__main__":
    replace_section(PAGE, "explored", table())
