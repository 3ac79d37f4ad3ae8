"""What is simulated: a subject says how its scenarios are judged, and what is told of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from simulation import judge
from simulation.judge import Report
from simulation.objects import judge as judge_of_programs
from simulation.objects.scenario import Scenario as ProgramsScenario
from simulation.options import AnyScenario
from simulation.scenario import Scenario


class Subject(NamedTuple):
    """`scenario`: its kind of scenario; `logs`: what a tally calls its logs; `sound`: the good news."""

    scenario: type[Any]
    simulate: Callable[[Any], Report]
    logs: str
    sound: str


NODES = Subject(
    Scenario, judge.simulate, "strategies", "no anomaly, all answered, all nodes hold the same log"
)
PROGRAMS = Subject(
    ProgramsScenario,
    judge_of_programs.simulate,
    "logs",
    "no anomaly, and every message was read at the end",
)


def subject_of(scenario: AnyScenario) -> Subject:
    """What runs in a scenario."""
    return PROGRAMS if isinstance(scenario, ProgramsScenario) else NODES


def simulate(scenario: AnyScenario) -> Report:
    """Run a scenario and judge it; never raises for what a subject does."""
    return subject_of(scenario).simulate(scenario)
