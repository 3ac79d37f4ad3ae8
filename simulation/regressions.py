"""The scenarios that failed once: `regressions.toml`."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from simulation.scenario import Scenario

REGRESSIONS_FILE = Path(__file__).with_name("regressions.toml")


class Regression(NamedTuple):
    """A scenario that failed once, and what it showed."""

    story: str
    scenario: Scenario


def regressions() -> list[Regression]:
    """All scenarios of `regressions.toml`, in the order of the file; nothing in them is drawn."""
    tables = tomllib.loads(REGRESSIONS_FILE.read_text(encoding="utf-8"))["regression"]
    return [_regression(dict(table)) for table in tables]


def _regression(table: dict[str, object]) -> Regression:
    story, seed = str(table.pop("story")), table.pop("seed")
    assert isinstance(seed, int)
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    return Regression(story, Scenario(seed, **options))
