"""Search all schedules of small clusters, setting by setting: `python -m performance.exploration`.

It writes the tables of docs/exploration.md and docs/exploration-objects.md. Seconds are CPU seconds of one
process, so that other load on the machine does not count. A setting that is not done after `--cpu` seconds is
shown with the share that was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from performance import ROOT, show_table
from simulation.exploration.bucket_setting import BucketSetting
from simulation.exploration.campaign import Campaign, explored
from simulation.exploration.setting import Setting
from simulation.exploration.systems import AnySetting
from simulation.objects.scenario import LEADERLESS, PUBLISHED, REPAIRED

PAGE = ROOT / "docs" / "exploration.md"
PAGE_OF_OBJECTS = ROOT / "docs" / "exploration-objects.md"
TITLES = ("setting", "schedules", "states", "ends", "CPU s", "verdict")
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
    Setting(before=2, sends=1, polls=0, compaction=True),
)

OBJECTS = (
    BucketSetting(PUBLISHED),
    BucketSetting(PUBLISHED, sends=3),
    BucketSetting(PUBLISHED, before=2, sends=1, compactions=1),
    BucketSetting(PUBLISHED, sends=3, compactions=1),
    BucketSetting(PUBLISHED, sends=1, lost=1, repeats=True),
    *(
        replace(setting, log=log)
        for log in (REPAIRED, LEADERLESS)
        for setting in (
            BucketSetting(),
            BucketSetting(sends=3),
            BucketSetting(polls=2),
            BucketSetting(lost=1),
            BucketSetting(delayed=1),
            BucketSetting(crashes=1),
            BucketSetting(late=1),
            BucketSetting(crashes=1, lost=1, delayed=1),
            BucketSetting(before=2, sends=1, compactions=1),
            BucketSetting(before=2, sends=1, compactions=1, lost=1),
            BucketSetting(before=2, sends=1, compactions=1, crashes=1),
        )
    ),
    BucketSetting(REPAIRED, sends=3, compactions=1),
)


@click.command()
@click.option("--cpu", default=12.0, show_default=True, help="CPU seconds for a setting.")
@click.option("--objects", is_flag=True, help="Only the settings on an object store.")
def main(cpu: float, *, objects: bool) -> None:
    """Write the tables of docs/exploration.md and docs/exploration-objects.md."""
    for page, settings in ((PAGE, SETTINGS), (PAGE_OF_OBJECTS, OBJECTS)):
        if page == PAGE_OF_OBJECTS or not objects:
            lines = show_table(TITLES, (row(setting, cpu) for setting in settings))
            replace_section(page, "settings", lines)


def row(setting: AnySetting, cpu_s_max: float) -> list[str]:
    """What the search of a setting found."""
    campaign = explored(setting, cpu_s_max=cpu_s_max)
    counts = (campaign.counts.schedules, campaign.states, campaign.ends)
    words = setting.command().partition(" --")[2].partition(" ")[2]
    figures = [f"{count:,}" for count in counts]
    return [f"`{words}`", *figures, f"{campaign.cpu_s:.1f}", verdict(campaign)]


def verdict(campaign: Campaign) -> str:
    """In a few words."""
    if campaign.failed:
        return f"`{campaign.failed.name}` after {len(campaign.failed.schedule)} events"
    return "sound" if campaign.done else f"sound in {campaign.fraction:.1%}"


def replace_section(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between the comments of a page that name a section."""
    page.write_text("\n".join(_replaced(page, name, lines)) + "\n", encoding="utf-8")


def _replaced(page: Path, name: str, lines: Sequence[str]) -> Iterator[str]:
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line == f"<!-- end of {name} -->":
            inside = False
        if not inside:
            yield line
        if line == f"<!-- {name} -->":
            inside = True
            yield from lines


if __name__ == "__main__":
    main()
