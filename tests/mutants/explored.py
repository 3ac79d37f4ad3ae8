"""Which mutants of the leaderless log die when all schedules of a small cluster are searched.

`schedules.json` keeps a short schedule of each. `python -m tests.mutants.explored` prints their table;
`python -m tests.mutants.explorer --search` searches.

`explored.toml` has the settings of each in which its rule can matter, the cheapest first. A setting is searched
whole at first, then within small bounds on delays, then with one seed after the other: see `Search`. What needs
more than a setting has is out of reach, with the reason.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

import click

from performance.harness import table_lines
from simulation.exploration.campaign import explored
from simulation.exploration.search import Event, Failed
from simulation.exploration.setting import Setting
from simulation.exploration.telling import played
from tests.mutants.cases import NODE
from tests.mutants.mutant import Mutant

SCHEDULES = Path(__file__).with_name("schedules.json")
CPU_S_MAX = 30.0  # of one setting
FIRST_CPU_S = 5.0  # of the search without a seed, and of all with a bound on delays
DELAYS_MAX = 4
SEED_CPU_S = 0.3  # of the search with a seed
ALL = {mutant.name: mutant for mutant in (*NODE["log"], *NODE["harder"])}

TOLD = tomllib.loads(Path(__file__).with_name("explored.toml").read_text(encoding="utf-8"))
NAMED = {name: Setting(**options) for name, options in TOLD["setting"].items()}
SETTINGS: dict[str, tuple[Setting, ...]] = {
    name: tuple(NAMED[each] if isinstance(each, str) else Setting(**each) for each in its)
    for name, its in TOLD["searched"].items()
}
OUT_OF_REACH: dict[str, str] = {
    name: told["reason"] for told in TOLD["out_of_reach"] for name in told["mutants"]
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
            search = explored(setting, cpu_s_max=cpu_s, seed=seed, delays=delays)
        if search.failed or (search.done and delays is None):
            return search.failed
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
    click.echo("\n".join(table()))
