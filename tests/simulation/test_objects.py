"""Logs on a virtual object store: what the simulator must find by itself, and what must pass."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from leaderless.core.shape import Shape
from simulation.commands.simulate import simulate as command
from simulation.judge import Report
from simulation.objects.bucket import Request
from simulation.objects.judge import simulate
from simulation.objects.scenario import (
    FLAGS,
    LEADERLESS,
    LOGS,
    PUBLISHED,
    REPAIRED,
    Scenario,
)
from simulation.objects.story import events_of
from simulation.shrink import smallest
from specs.stories import STORIES
from tests.mutants.cases import MUTANTS
from tests.regressions import Regression, weaknesses

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
SOUND = (LEADERLESS, REPAIRED)
MANY = range(0, 2000, 200)  # the first of each 200; CI runs one part a log, `make seeds` the others
SEEDS = """
from simulation.objects.bucket import Request
from simulation.objects.judge import simulate
from simulation.objects.scenario import LOGS, Scenario
for log in LOGS:
    for seed in range(6):
        report = simulate(Scenario.draw(seed, {"log": log}))
        print(log, seed, report.names, report.digest)
"""


def invoke(*words: str) -> Result:
    return CliRunner().invoke(command, ("--programs", *words))


def first_failing(name: str, **given: object) -> Report:
    """The first of some seeds of the published protocol that shows an anomaly of this name."""
    for seed in range(60):
        report = simulate(Scenario.draw(seed, {"log": PUBLISHED} | given))
        if name in report.names:
            return report
    raise AssertionError(f"no seed shows {name}")


def steps_of(journal: Sequence[Request], topic: str) -> Iterator[str]:
    """The requests on one topic of S3-Queue as the steps of `specs/TwoStepAssign`.

    What a reader or an initialiser asks is no step. A producer reads the counter, puts the pending entry
    (if there is one), changes the counter, puts its own entry. The compactor writes the compacted entry,
    deletes those below, and moves the cursor; the model lets it start with a step of its own.
    """
    own: set[str] = set()
    for request in journal:
        key = request.key.removeprefix(f"{topic}/")
        if request.outcome != "ok" or key == request.key:
            continue
        match request.kind, key.split("/"):
            case "update", ["meta", "sequence-counter"]:
                own.add(f"{orjson.loads(request.value)['pending']['offset']:020}")
                yield "CasCounter"
            case "put", ["index", offset]:
                yield from _entry_put(request, offset, own)
            case "delete", ["index", _]:
                yield "CompactDelete"
            case "update", ["meta", "compaction-cursor"]:
                yield "CompactCursor"


def _entry_put(request: Request, offset: str, own: set[str]) -> Iterator[str]:
    if orjson.loads(request.value)["type"] == "COMPACTED":
        yield from ("CompactStart", "CompactWrite")
    elif offset in own:
        own.discard(offset)
        yield "MaterialiseOwn"
    else:
        yield "MaterialisePending"


# ---------------------------------------------------------------- what must be found


def test_the_simulator_finds_the_data_loss_of_the_published_protocol_without_any_fault() -> None:
    report = first_failing("lost-write", faults=())
    assert report.fault_acts == 0


def test_the_simulator_finds_the_double_append_after_a_lost_answer() -> None:
    report = first_failing("duplicate", faults=("answer-lost",), repeats=True)
    assert report.fault_acts > 0


def test_a_data_loss_shrinks_to_two_appends_a_compaction_and_one_append() -> None:
    given = {"faults": (), "processes": 1, "workers": 1, "key_count": 1, "operations": 20}
    small = smallest(first_failing("lost-write", **given))
    acts = [act.kind for act in small.scenario.acts() if act.kind != "poll"]
    assert acts == ["send", "send", "compact", "send"]
    assert "lost-write" in small.names


def test_the_shrunk_story_is_the_counterexample_of_the_model() -> None:
    """TLC's way in `published-in-turn`, with one append less: the range of the run has two offsets."""
    loss = next(each for each in weaknesses() if each.anomaly == "lost-write")
    run = list(steps_of(simulate(loss.scenario).journal, "0"))
    story = next(each for each in STORIES if each.page == "two-step-assign")
    actions = (step["action"] for step in story.steps)
    steps = [action for action in actions if action not in ("Init", "ReadCounter")]
    steps.remove("MaterialisePending")  # the first one: nothing is pending before the first append
    del steps[2:5]
    assert run[: len(steps)] == steps


@pytest.mark.parametrize("regression", weaknesses(), ids=lambda each: each.anomaly)
def test_a_weakness_is_found_in_the_published_protocol_alone(
    regression: Regression,
) -> None:
    assert regression.anomaly in simulate(regression.scenario).names
    for log in SOUND:
        assert simulate(replace(regression.scenario, log=log)).failures == [], log


# ---------------------------------------------------------------- what must pass


@pytest.mark.parametrize("log", SOUND)
def test_a_sound_log_survives_what_is_drawn(log: str) -> None:
    for seed in range(25):
        report = simulate(Scenario.draw(seed, {"log": log}))
        assert report.failures == [], Scenario.command_of(seed, {"log": log})


@pytest.mark.parametrize(
    "first",
    [pytest.param(each, marks=pytest.mark.seeds if each else pytest.mark.slow) for each in MANY],
)
@pytest.mark.parametrize("log", SOUND)
def test_a_sound_log_survives_2000_seeds(log: str, first: int) -> None:
    for seed in range(first, first + 200):
        report = simulate(Scenario.draw(seed, {"log": log}))
        assert report.failures == [], Scenario.command_of(seed, {"log": log})


def test_runs_hold_what_the_rules_are_for() -> None:
    """The test of the test: faults happen, objects are compacted, tombstones are left, large values written."""
    journals = [
        simulate(Scenario.draw(seed, {"log": log, "value_bytes": 100, "seal_entries": 2})).journal
        for log in SOUND
        for seed in range(7)
    ]
    requests = [each for journal in journals for each in journal]
    outcomes = {each.outcome for each in requests}
    assert {"ok", "conflict", "throttled", "raced"} <= outcomes
    keys = " ".join(each.key for each in requests)
    for part in ("run/", "segment/", "data/", "compacted/"):
        assert part in keys, part
    assert any(b"DELETED" in each.value for each in requests)


# ---------------------------------------------------------------- the same seed, the same run


@pytest.mark.parametrize("log", LOGS)
def test_a_seed_gives_the_same_run_twice(log: str) -> None:
    scenario = Scenario.draw(5, {"log": log})
    assert simulate(scenario).digest == simulate(scenario).digest


@pytest.mark.process
def test_the_hash_seed_changes_nothing() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SEEDS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]


def test_options_that_are_given_leave_the_draws_of_others() -> None:
    drawn = Scenario.draw(7)
    assert Scenario.draw(7, {"processes": 9}) == replace(drawn, processes=9)


# ---------------------------------------------------------------- the command


def test_the_command_that_is_printed_runs_the_same() -> None:
    done = invoke("--seed", "7")
    words = done.output.splitlines()[1].split()
    assert words[:3] == ["./maelstrom", "simulate", "--programs"]
    again = invoke(*words[3:])
    assert done.exit_code == 0
    assert again.output.splitlines()[-1] == done.output.splitlines()[-1]


def test_a_failing_seed_exits_with_one_and_can_be_shrunk() -> None:
    loss = weaknesses()[0].scenario
    done = invoke(*loss.command().split()[3:], "--shrink")
    assert done.exit_code == 1
    assert "✘ lost-write" in done.output
    assert "over COMPACTED, 2 up to 2" in done.output


def test_a_range_counts_and_says_how_to_replay() -> None:
    given = ("--log", PUBLISHED, "--faults", "none", "--jobs", "1")
    told = json.loads(invoke("--seeds", "3", "--keep-going", "--json", *given).stdout)
    assert told["seeds"] == 3
    assert told["logs"] == {PUBLISHED: 3}
    text = invoke("--seeds", "20", *given).output
    assert "replay: ./maelstrom simulate --programs --seed" in text


@pytest.mark.parametrize(
    "words",
    [
        ("--faults", "weather"),
        ("--log", "paper"),
        ("--workers", "0"),
        ("--strategy", "cas"),
        ("--out", "x"),
    ],
)
def test_bad_arguments_are_refused(words: tuple[str, ...]) -> None:
    assert invoke(*words).exit_code == 2


def test_a_story_tells_what_was_overwritten() -> None:
    report = simulate(weaknesses()[0].scenario)
    told = [line for line in events_of(report.journal) if "over COMPACTED" in line]
    assert len(told) == 1
    assert "put 0/index/00000000000000000002 = WAL, 1 up to 2" in told[0]


def test_every_option_has_words() -> None:
    assert set(FLAGS) == set(Scenario(0).options()) - {"seed"}


# ---------------------------------------------------------------- processes that differ

MIXED = {"log": "leaderless", "mixed": True}


def test_a_mixed_run_has_programs_and_nodes_that_would_make_other_logs() -> None:
    scenario = Scenario.draw(1, MIXED)
    lives = [scenario.life(f"p{number}/{life}", Shape()) for number in range(4) for life in (1, 2)]
    assert len({life.nodes for life in lives}) > 2
    assert any(not life.nodes for life in lives)
    assert len({life.shape for life in lives}) == len({*map(str, lives)}) == 8
    assert scenario.life("operator", Shape()).nodes == 0


def test_both_commit_offsets_in_a_mixed_run() -> None:
    written = Counter[str]()
    for seed in range(4):
        report = simulate(Scenario.draw(seed, MIXED | {"processes": 3, "operations": 60}))
        assert report.failures == []
        for request in report.journal:
            if request.kind in ("put", "create", "update") and request.outcome == "ok":
                written[request.key.partition("/")[0]] += 1
    assert {"committed", "group", "segment", "run", "head"} <= written.keys()


def test_registers_of_offsets_that_follow_from_the_nodes_are_found() -> None:
    """Who reads fewer registers than others wrote misses commits."""
    own = MUTANTS["offset-registers-of-the-nodes"]
    with own.alive():
        found = (simulate(Scenario.draw(seed, MIXED | {"faults": ()})) for seed in range(200))
        assert any("CommitsKept" in report.names for report in found)


def test_who_gives_the_size_of_a_tail_gets_processes_that_are_alike() -> None:
    assert not Scenario.draw(1, {"log": "leaderless", "seal_entries": 2}).mixed
    assert Scenario.draw(1, MIXED | {"seal_entries": 2}).mixed


def test_a_vacuum_whose_clock_is_ahead_deletes_no_value() -> None:
    """As on etcd, which tells no times. The law `DataReadable` sees the record come without its value."""
    given = MIXED | {"ahead_s": 3_720.0, "value_bytes": 100, "operations": 120, "faults": ()}
    for seed in range(30):
        report = simulate(Scenario.draw(seed, given))
        assert report.failures == [], seed
