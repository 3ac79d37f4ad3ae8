"""The scenarios that failed once: `regressions.toml`, and `weaknesses.toml` of S3-Queue."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from simulation.scenario import Scenario

ROOM = Path(__file__).parents[1] / "simulation"


class Regression(NamedTuple):
    """A scenario that failed once, and what it showed; `anomaly`: its name, if it fails to this day."""

    story: str
    scenario: Scenario
    anomaly: str = ""


def regressions() -> list[Regression]:
    """All scenarios of clusters that failed once, in the order of the file; nothing in them is drawn."""
    return _read("regressions.toml")


def weaknesses() -> list[Regression]:
    """The scenarios of programs that show a weakness of S3-Queue as published."""
    return _read("weaknesses.toml")


def known_first(last: int, count: int) -> list[int]:
    """The first `count` seeds: the one that showed a failure last, its neighbours, and the others."""
    return sorted(range(count), key=lambda seed: abs(seed - last))


def _read(file: str) -> list[Regression]:
    tables = tomllib.loads((ROOM / file).read_text(encoding="utf-8"))["regression"]
    return [_regression(dict(table)) for table in tables]


def _regression(table: dict[str, Any]) -> Regression:
    story, anomaly = table.pop("story"), table.pop("anomaly", "")
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    return Regression(story, Scenario(**options), anomaly)
