"""Search all schedules of small clusters, setting by setting: `python -m performance.exploration`.

It writes the table of docs/evidence/exploration.md; with `--all` it prints many more settings. Seconds are
CPU seconds of one process, so that other load on the machine does not count. A setting that is not done after
`--cpu` seconds is shown with the share that was.
"""

from dataclasses import replace

import click

from performance.age import line
from performance.harness import ROOT, program, replace_section, show_table
from simulation.exploration.campaign import explored
from simulation.exploration.search import Search
from simulation.exploration.setting import Setting
from simulation.logs import LEADERLESS, PUBLISHED, REPAIRED

PAGE = ROOT / "docs" / "evidence" / "exploration.md"
TITLES = ("setting", "schedules", "states", "CPU s", "verdict")
SHOWN = (
    Setting("prefetch", sends=3),
    Setting("leader", crashes=1),
    Setting("cas", lost=1),
    Setting("prefetch-sealed", sends=1, crashes=1),
    Setting(lost=1),
    Setting(nodes=3, sends=3, polls=0),
    Setting(crashes=1),
    Setting(nodes=1, before=2, sends=1, compaction=True),
    Setting(PUBLISHED, programs=True, sends=3, compactions=1),
    Setting(REPAIRED, programs=True, crashes=1, lost=1, delayed=1),
    Setting(programs=True, crashes=1, lost=1, delayed=1),
    Setting(programs=True, hand_over=True, late=1),
)
SETTINGS = (
    Setting("prefetch", sends=3),
    Setting("prefetch", lost=1),
    Setting("prefetch", crashes=1),
    Setting("leader", crashes=1),
    Setting("leader", partitions=1),
    Setting("cas"),
    Setting("cas", nodes=3, polls=0, sends=3),
    Setting("cas", lost=1),
    Setting("cas", duplicates=1),
    Setting("cas", crashes=1),
    Setting("cas", polls=0, late=1),
    Setting("cas", crashes=1, lost=1),
    Setting("prefetch-sealed"),
    Setting("prefetch-sealed", sends=1, crashes=1),
    Setting("prefetch-sealed", sends=1, lost=1),
    Setting(),
    Setting(hand_over=True),
    Setting(nodes=3, sends=3, polls=0),
    Setting(polls=2),
    Setting(lost=1),
    Setting(duplicates=1),
    Setting(crashes=1),
    Setting(polls=0, late=1),
    Setting(polls=0, hand_over=True, late=1),
    Setting(sends=1, polls=0, fence=1),
    Setting(nodes=1, before=1, sends=1, polls=0, fence=1, lost=1),
    Setting(sends=0, polls=0, commits=2),
    Setting(sends=0, polls=0, commits=1, crashes=1),
    Setting(nodes=1, before=2, sends=1, compaction=True),
    # Programs on object storage.
    Setting(PUBLISHED, programs=True),
    Setting(PUBLISHED, programs=True, sends=3),
    Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1),
    Setting(PUBLISHED, programs=True, sends=3, compactions=1),
    Setting(PUBLISHED, programs=True, sends=1, lost=1, repeats=True),
    Setting(PUBLISHED, programs=True, lost=2),
    *(
        replace(setting, strategy=log)
        for log in (REPAIRED, LEADERLESS)
        for setting in (
            Setting(programs=True),
            Setting(programs=True, sends=3),
            Setting(programs=True, polls=2),
            Setting(programs=True, lost=1),
            Setting(programs=True, delayed=1),
            Setting(programs=True, crashes=1),
            Setting(programs=True, late=1),
            Setting(programs=True, crashes=1, lost=1, delayed=1),
            Setting(programs=True, before=2, sends=1, compactions=1),
            Setting(programs=True, before=2, sends=1, compactions=1, lost=1),
            Setting(programs=True, before=2, sends=1, compactions=1, crashes=1),
        )
    ),
    Setting(REPAIRED, programs=True, sends=3, compactions=1),
    Setting(programs=True, nodes=1),
    Setting(programs=True, nodes=1, polls=1),
    Setting(programs=True, nodes=1, lost=1),
    Setting(programs=True, nodes=1, delayed=1),
    Setting(programs=True, nodes=1, crashes=1),
    Setting(programs=True, nodes=1, sends=3),
    Setting(programs=True, nodes=2, sends=3, hand_over=True),
    Setting(programs=True, hand_over=True),
    Setting(programs=True, hand_over=True, lost=1),
    Setting(programs=True, hand_over=True, sends=3, duplicates=1),
    Setting(programs=True, hand_over=True, late=1),
)


@program(__doc__)
@click.option("--cpu", default=30.0)
@click.option("--all", "every", is_flag=True)
def main(*, cpu: float, every: bool) -> None:
    lines = show_table(TITLES, (row(each, cpu) for each in (SETTINGS if every else SHOWN)))
    if not every:
        replace_section(PAGE, "settings", [line(["leaderless/core", "simulation"]), "", *lines])


def row(setting: Setting, cpu_s_max: float) -> list[str]:
    """What the search of a setting found."""
    search = explored(setting, cpu_s_max=cpu_s_max)
    return [
        f"`{setting.strategy} {setting.brief}`".replace(" `", "`"),
        f"{search.counts.schedules:,}",
        f"{len(search.states):,}",
        f"{search.cpu_s:.1f}",
        verdict(search),
    ]


def verdict(search: Search) -> str:
    """Say how a search ended: sound, unfinished, or what failed and after how many events."""
    if search.failed:
        return f"`{search.failed.name}` after {len(search.failed.schedule)} events"
    return "sound" if search.done else f"unfinished: {search.fraction:.1%}"


if __name__ == "__main__":
    main()
