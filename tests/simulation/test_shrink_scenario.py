"""The shrinker: small, still wrong, and told by its messages."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runs.collection import collected_quietly
from simulation.judge import Failure, Report, judged, simulate
from simulation.reporting import report_smallest
from simulation.scenario import Scenario
from simulation.shrink import Effort, simpler_than, smallest, subject
from simulation.story import Story, story_of, text_of
from simulation.world import World

pytestmark = pytest.mark.slow  # two searches of many runs

PREFETCH = Scenario(  # fails already; a few seeds a step are enough to make it smaller
    seed=54,
    strategy="prefetch",
    nodes=2,
    clients=1,
    rate=200.0,
    time_limit_s=0.2,
    latency_ms=1,
    key_count=1,
)
FEW_SEEDS = Effort(seeds_per_step=2, seeds_at_the_end=5)


def toy(scenario: Scenario) -> Report:
    """Fails while there are three nodes and a kill, unless operation 3 or act 1 is left out."""
    wrong = scenario.nodes >= 3 and "kill" in scenario.nemesis
    wrong = wrong and 3 not in scenario.omit and 1 not in scenario.omit_faults
    return Report(
        scenario,
        [Failure("wrong", "")] if wrong else [],
        digest="",
        virtual_s=0.0,
        cpu_s=0.0,
        operations=10 - len(scenario.omit),
        acts=10,
        fault_acts=4,
    )


def test_only_what_matters_stays() -> None:
    scenario = Scenario(1, nodes=5, clients=4, nemesis=("partition", "kill", "store"))
    small = smallest(toy(scenario), run=toy, effort=FEW_SEEDS).scenario
    assert (small.nodes, small.clients, small.nemesis) == (3, 1, ("kill",))
    assert small.omit == (0, 1, 2, 4, 5, 6, 7, 8, 9)
    assert small.omit_faults == (0, 2, 3)


def test_a_sound_report_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is wrong"):
        smallest(toy(Scenario(1)), run=toy, effort=FEW_SEEDS)


def test_each_step_changes_one_option() -> None:
    scenario = Scenario.draw(1)
    for other in simpler_than(scenario):
        changed = [
            name for name, value in asdict(other).items() if value != getattr(scenario, name)
        ]
        assert len(changed) == 1


@pytest.fixture(scope="module")
def small() -> Report:
    return smallest(simulate(PREFETCH), effort=FEW_SEEDS)


def test_prefetch_needs_no_fault_and_few_operations(small: Report) -> None:
    assert small.operations <= 20
    assert small.scenario.nodes == 2
    assert small.scenario.nemesis == ()


def test_it_is_about_the_anomaly_and_not_about_what_follows_from_it(
    small: Report,
) -> None:
    assert "int-poll-skip" in small.names
    both = [Failure("Convergence", "n0 differs from n1"), Failure("poll-skip", "4 is missing")]
    assert subject(replace(small, failures=both)) == "poll-skip"
    assert subject(replace(small, failures=both[:1])) == "Convergence"


def test_progress_goes_down() -> None:
    told: list[str] = []
    smallest(simulate(PREFETCH), log=told.append, effort=FEW_SEEDS)
    operations = [int(line.split()[0]) for line in told]
    assert operations == sorted(operations, reverse=True)


def test_a_lost_message_is_marked() -> None:
    def event(kind: str, number: int) -> dict[str, Any]:
        message = {"id": number, "src": "c1", "dest": "n0", "body": {"type": "send", "msg": number}}
        return {"type": kind, "time": number, "message": message}

    story = Story(1, [event("send", 0), event("send", 1), event("recv", 1)], frozenset((0,)))
    lost, *others = text_of(story)
    assert lost.endswith("send msg=0 (lost)")
    assert not any("lost" in line for line in others)


def test_what_is_small_replays(small: Report) -> None:
    again = simulate(small.scenario)
    assert (again.digest, again.names) == (small.digest, small.names)


def test_the_decisive_message_is_among_those_shown(small: Report) -> None:
    with collected_quietly():
        world = World(small.scenario, keep=True)
        report = judged(world)
        story = story_of(world, report, subject(report))
    decisive = [each for each in story.events if each["message"]["id"] == story.decisive]
    assert {each["type"] for each in decisive} == {"send", "recv"}
    assert sum(line.startswith(">>") for line in text_of(story)) == 1


def test_an_invariant_is_broken_in_the_step_of_a_message() -> None:
    """`leader` cut off never answers its probe; the last message received is told."""
    scenario = Scenario(0, strategy="leader", nodes=3, nemesis=("partition",))
    reports = (simulate(replace(scenario, seed=seed)) for seed in range(10))
    assert next(each for each in reports if each.failures).message_id is not None


def test_the_story_is_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = report_smallest(PREFETCH, tmp_path / "story.svg", Console(soft_wrap=True), FEW_SEEDS)
    told = capsys.readouterr().out
    assert f"✘ {subject(small)}" in told
    assert "Decided by message" in told
    assert "replay: ./maelstrom simulate --seed" in told
    assert (tmp_path / "story.svg").read_text().startswith("<svg")
