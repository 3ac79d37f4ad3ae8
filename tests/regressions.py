"""The scenarios that failed once: `regressions.toml`, and `objects/regressions.toml` of programs."""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from simulation.objects.scenario import Scenario as ProgramsScenario
from simulation.scenario import Scenario

ROOM = Path(__file__).parents[1] / "simulation"


class Regression(NamedTuple):
    """A scenario that failed once, and what it showed; `anomaly`: its name, if it fails to this day."""

    story: str
    scenario: Any
    anomaly: str = ""


def regressions() -> list[Regression]:
    """All scenarios of clusters that failed once, in the order of the file; nothing in them is drawn."""
    return _read(ROOM / "regressions.toml", Scenario)


def weaknesses() -> list[Regression]:
    """The scenarios of programs that show a weakness of S3-Queue as published."""
    return _read(ROOM / "objects" / "regressions.toml", ProgramsScenario)


def _read(file: Path, kind: type[Any]) -> list[Regression]:
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["regression"]
    return [_regression(dict(table), kind) for table in tables]


def _regression(table: dict[str, Any], kind: type[Any]) -> Regression:
    story, anomaly = table.pop("story"), table.pop("anomaly", "")
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    return Regression(story, kind(**options), anomaly)
