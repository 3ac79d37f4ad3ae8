"""Which mutants of the leaderless log die when all schedules of a small cluster are searched.

`python -m tests.mutants.explored` writes the table of docs/exploration.md.

Each has settings in which its rule can matter, the cheapest first. A setting is searched without a seed at
first, and then with one seed after the other: see `Search`. What needs more than a setting has is out of reach,
with the reason.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

import click

from performance import table_lines
from performance.exploration import PAGE, replace_section
from simulation.exploration.campaign import explored
from simulation.exploration.events import Event
from simulation.exploration.setting import Setting
from simulation.exploration.telling import played
from simulation.pool import spread
from tests.mutants.harder import HARDER
from tests.mutants.mutant import Mutant
from tests.mutants.mutants import MUTANTS

CPU_S_MAX = 30.0  # of one setting
FIRST_CPU_S = 5.0  # of the search without a seed
SEED_CPU_S = 0.3  # of the search with a seed
ALL = {mutant.name: mutant for mutant in (*MUTANTS, *HARDER)}

ONE = Setting(nodes=1, sends=1, polls=0)
LOST = Setting(nodes=1, sends=1, polls=0, lost=1)
REBORN = Setting(nodes=1, sends=2, polls=0, crashes=1)
RIVALS = Setting(polls=0)
HANDED = Setting(hand_over=True)
HANDED_LATE = Setting(hand_over=True, polls=0, late=1)
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
LONG = Setting(nodes=1, before=8, sends=0, polls=1, compaction=True, crashes=1)
SEALED = Setting(polls=0, compaction=True)
WORKER_DIES = Setting(nodes=1, before=2, sends=1, polls=0, compaction=True, crashes=1)
TWO_WORKERS = Setting(before=2, sends=1, polls=0, compaction=True, crashes=1)
SLOW_WORKER = Setting(before=2, sends=1, polls=0, compaction=True, late=1)
STALE_WORKER = Setting(before=2, sends=2, polls=0, compaction=True, late=1)
DOUBLED_REBORN = Setting(
    before=3, sends=2, polls=0, compaction=True, hand_over=True, crashes=1, duplicates=1
)
COMMIT = Setting(sends=0, polls=0, commits=1)
COMMITS_SHARED = Setting(nodes=3, sends=0, polls=0, commits=3)  # n0 and n2 share a register
COMMITS_REBORN = Setting(nodes=1, sends=0, polls=0, commits=2, crashes=1)
COMMITS_REBORN_LATE = Setting(nodes=1, sends=0, polls=0, commits=2, crashes=1, late=1)
COMMIT_LOST = Setting(sends=0, polls=0, commits=1, lost=1)
DEFERRED = Setting(nodes=1, sends=0, polls=0, commits=2, deferred=True)
DEFERRED_FENCED = Setting(sends=0, polls=0, commits=1, fence=1, late=1, deferred=True)
DEFERRED_RUNS = Setting(nodes=4, sends=3, polls=0, commits=2, deferred=True, compaction=True)
DEFERRED_TWO_RUNS = Setting(
    nodes=4, before=1, sends=2, polls=0, commits=2, deferred=True, compaction=True, late=1
)
DEFERRED_SKIPPED = Setting(
    nodes=4, before=1, sends=4, polls=0, commits=2, deferred=True, compaction=True
)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    "dedup-skipped": (LOST, HANDED_LATE, HANDED_ONCE_MORE),
    "ack-before-commit": (ONE,),
    "unknown-is-success": (LOST,),
    "unknown-is-failure": (LOST, RIVALS),
    "new-id-after-commit-failed": (LOST, RIVALS, HANDED_LATE),
    "new-id-after-hand-over": (HANDED, HANDED_LATE, HANDED_ONCE_MORE),
    "answer-is-commit": (HANDED, HANDED_ONCE_MORE),
    "writer-reused": (REBORN,),
    "blind-put": (RIVALS,),
    "offsets-per-batch": (Setting(before=1, sends=3, polls=0, hand_over=True),),
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
    "stale-worker-takes-over": (STALE_WORKER,),
    "page-without-a-child": (LONG,),
    "page-before-it-is-written": (LONG,),
    "index-put": (STALE_WORKER,),
    "claim-in-the-old-epoch": (READ_AGAIN,),
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
    "committed-register-lowered": (COMMITS_REBORN,),
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
    "refused-without-a-pause": "the store of a search refuses nothing",
}

STALE = (
    "the first worker waits for one message, the second has read its claim, a lease passes, the second takes"
    " over, and only then the message arrives: two sends, two claims, and about forty events in one order"
)
TWO_RUNS = (
    "the higher offset must stand in an earlier run than the lower one, so five entries in one"
    " order, and a node that reads the index after that"
)
NOT_FOUND = {
    "run-without-writers": "a batch that is handed over arrives again when it is in a run and its receiver has"
    " started anew: two more commits, a compaction and a start lie between the two copies",
    "stale-worker-takes-over": STALE,
    "index-put": STALE,
    "stale-release": STALE,
    "outline-keeps-the-last-commit": TWO_RUNS,
    "outline-lowers-a-commit": TWO_RUNS,
}


class Found(NamedTuple):
    """How a mutant died: by which invariant or anomaly, in which setting, after how many events."""

    name: str
    setting: Setting
    events: int


def look_for(work: tuple[str, float]) -> tuple[str, Found | None]:
    """Search the settings of a mutant until a schedule fails, each for so many seconds of CPU."""
    name, cpu_s_max = work
    for setting in SETTINGS[name]:
        if found := _found(ALL[name], setting, cpu_s_max):
            return name, found
    return name, None


def _found(mutant: Mutant, setting: Setting, cpu_s_max: float) -> Found | None:
    """What a search of the mutant finds, if the same schedule is sound with the right core."""
    events = 0
    for seed, cpu_s in _searches(cpu_s_max):
        with mutant.alive():
            campaign = explored(setting, cpu_s_max=cpu_s, seed=seed)
        events += campaign.counts.events
        if campaign.failed:
            require_sound(setting, campaign.failed.schedule)
            return Found(campaign.failed.name, setting, events)
        if campaign.done:
            break
    return None


def _searches(cpu_s_max: float) -> Iterator[tuple[int | None, float]]:
    """The seeds of the searches of a setting, and the seconds of CPU of each."""
    first_s = min(FIRST_CPU_S, cpu_s_max)
    yield None, first_s
    for seed in range(round((cpu_s_max - first_s) / SEED_CPU_S)):
        yield seed, SEED_CPU_S


def require_sound(setting: Setting, schedule: Sequence[Event]) -> None:
    """Play a schedule with the right core, as far as it can happen there; it must not fail."""
    failed = played(setting, schedule).failed
    assert failed is None, f"the right core fails, too: {setting.command()}: {failed}"


def rule_of(name: str) -> str:
    """The rule that a mutant breaks."""
    mutant: Mutant = ALL[name]
    return mutant.rule


TITLES = ("what", "caught by", "events", "in the setting")


def row(name: str, found: Found | None) -> list[str]:
    """A line of the table."""
    if found is None:
        words = "; ".join(f"`{_words(each)}`" for each in SETTINGS[name])
        return [f"`{name}`", "**survives**", "", words]
    return [f"`{name}`", f"`{found.name}`", str(found.events), f"`{_words(found.setting)}`"]


def _words(setting: Setting) -> str:
    return setting.command().partition("leaderless ")[2]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--cpu", default=CPU_S_MAX, show_default=True, help="CPU seconds for a setting.")
def main(names: tuple[str, ...], jobs: int, cpu: float) -> None:
    """Write the rows of NAMES, or of all mutants, into the table of docs/exploration.md."""
    rows = {line.split("`")[1]: line for line in _lines() if line.startswith("| `")}
    work = [(name, cpu) for name in SETTINGS if not names or name in names]
    for done, (name, found) in enumerate(spread(look_for, work, jobs), 1):
        rows[name] = f"| {' | '.join(row(name, found))} |"
        click.echo(
            f"{done} of {len(work)}: {name}, {found.name if found else 'survives'}", err=True
        )
    lines = [*table_lines(TITLES, ()), *(rows[name] for name in SETTINGS if name in rows), ""]
    killed = sum("survives" not in line for line in rows.values())
    lines += [f"{killed} of {len(rows)} found. Out of reach of these sizes:", ""]
    lines += [line for reason, same in _by_reason(OUT_OF_REACH) for line in _item(reason, same)]
    lines += [
        "",
        "Not found in the time of a search, because so much must happen in one order:",
        "",
    ]
    lines += [line for reason, same in _by_reason(NOT_FOUND) for line in _item(reason, same)]
    replace_section(PAGE, "mutants", lines)


def _item(reason: str, names: list[str]) -> list[str]:
    text = f"- {', '.join(f'`{name}`' for name in names)}: {reason}."
    return wrap(text, 116, subsequent_indent="  ", break_on_hyphens=False)


def _lines() -> list[str]:
    """The section as it is."""
    text = PAGE.read_text(encoding="utf-8")
    return (
        text.partition("<!-- mutants -->")[2].partition("<!-- end of mutants -->")[0].splitlines()
    )


def _by_reason(reasons: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Each reason, and the mutants that have it."""
    for reason in dict.fromkeys(reasons.values()):
        yield reason, [name for name, its in reasons.items() if its == reason]


if __name__ == "__main__":
    main()
