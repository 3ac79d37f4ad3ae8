"""Mutants that die when all schedules are searched (`python -m tests.mutants.explored`)."""

import pytest

from simulation.exploration.campaign import explored, systems_of
from simulation.exploration.telling import followed
from tests.mutants.explored import (
    ALL,
    OUT_OF_REACH,
    SETTINGS,
    kept,
    look_for,
    require_sound,
)

pytestmark = pytest.mark.simulation
QUICK = {
    "ack-before-commit": "AckedExactlyOnce",
    "answer-is-commit": "AckedExactlyOnce",
    "blind-put": "HeadNeverReturns",
    "acknowledged-before-written": "CommitsKept",
    "page-without-a-child": "IndexMatchesRuns",
    "page-before-it-is-written": "CommittedReadable",
    "segments-never-deleted": "RefinesHeadLog",
}


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_dies(name: str) -> None:
    found = look_for(name)
    assert found is not None
    assert found.law == QUICK[name]


@pytest.mark.parametrize(
    ("name", "law"),
    [("fence-ignored", "NoAppendWhileFenced"), ("overtaken-write-acknowledged", "CommitsKept")],
)
def test_a_mutant_dies_within_two_delays(name: str, law: str) -> None:
    with ALL[name].alive():
        bounded = explored(SETTINGS[name][0], delays=2)
    assert bounded.failed is not None
    assert bounded.failed.name == law
    assert bounded.counts.events < 3_000


def test_every_mutant_has_a_setting_or_a_reason() -> None:
    assert SETTINGS.keys() | OUT_OF_REACH.keys() == ALL.keys()
    assert not SETTINGS.keys() & OUT_OF_REACH.keys()


KEPT = kept()


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_schedule_fails_with_its_mutant_alone(name: str) -> None:
    failure = KEPT[name]
    with ALL[name].alive():
        failed = followed(systems_of(failure.setting)(), failure.schedule)
    assert failed is not None
    assert failed.name == failure.law
    require_sound(failure.setting, failure.schedule)


def test_every_mutant_with_a_setting_has_a_kept_schedule() -> None:
    assert SETTINGS.keys() == KEPT.keys()
