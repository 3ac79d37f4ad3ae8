"""The scenarios that failed once: `regressions.toml`."""

import tomllib
from pathlib import Path
from typing import NamedTuple

from simulation.scenario import Scenario

FILE = Path(__file__).with_name("regressions.toml")


class Regression(NamedTuple):
    """A scenario, and what it once showed."""

    story: str
    scenario: Scenario


def regressions() -> list[Regression]:
    """All of them, in the order of the file."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))["regression"]
    return [_regression(dict(table)) for table in tables]


def _regression(table: dict[str, object]) -> Regression:
    story, seed = str(table.pop("story")), table.pop("seed")
    assert isinstance(seed, int)
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in table.items()}
    return Regression(story, Scenario.draw(seed, given))
