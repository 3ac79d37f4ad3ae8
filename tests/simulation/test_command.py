"""`./maelstrom simulate` as its users see it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runs.history import read_history
from simulation.commands.simulate import simulate
from simulation.judge import simulate as run
from simulation.options import as_words
from simulation.scenario import FLAGS, Scenario, command_of


def invoke(*words: str) -> Result:
    return CliRunner().invoke(simulate, words)


def test_one_seed_prints_its_options_a_command_that_runs_the_same_and_its_digest() -> None:
    done = invoke("--seed", "7")
    first, command, *_, last = done.output.splitlines()
    assert (done.exit_code, last) == (0, f"digest: {run(Scenario.draw(7)).digest}")
    assert first.startswith("seed 7")
    assert command.split()[:2] == ["./maelstrom", "simulate"]
    assert invoke(*command.split()[2:]).output.splitlines()[-1] == last


def test_a_failing_seed_exits_with_one() -> None:
    done = invoke("--seed", "0", "--strategy", "prefetch", "--nemesis", "none", "--nodes", "4")
    assert done.exit_code == 1
    assert "poll-skip" in done.output


def test_json_for_tools() -> None:
    told = json.loads(invoke("--seed", "7", "--json", "--nodes", "2").output)
    assert (told["options"]["nodes"], told["failures"]) == (2, [])
    assert told["replay"] == "./maelstrom simulate --seed 7 --nodes 2"


def test_a_range_stops_at_the_first_failure_and_says_how_to_replay_it() -> None:
    given = ["--strategy", "prefetch", "--nemesis", "none", "--nodes", "4"]
    done = invoke("--seed", "0", "--seeds", "30", "--jobs", "1", *given)
    assert done.exit_code == 1
    assert "replay: ./maelstrom simulate --seed" in done.output
    assert "of 30 seeds" not in done.output


def test_a_range_keeps_going_when_asked() -> None:
    done = invoke("--seeds", "6", "--jobs", "2", "--keep-going", "--json", "--strategy", "prefetch")
    told = json.loads(done.stdout)
    assert (told["seeds"], told["strategies"]) == (6, {"prefetch": 6})
    assert [each["seed"] for each in told["failed"]] == sorted(e["seed"] for e in told["failed"])


def test_out_keeps_the_files_of_a_run(tmp_path: Path) -> None:
    assert invoke("--seed", "7", "--out", str(tmp_path / "run")).exit_code == 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"history.edn", "results.edn", "results.json", "test.json", "net-journal.jsonl"} <= names
    test = json.loads((tmp_path / "run" / "test.json").read_text())
    assert (test["engine"], test["scenario"]["seed"]) == ("simulation", 7)
    assert len(read_history(tmp_path / "run" / "history.edn")) == len(run(Scenario.draw(7)).history)


@pytest.mark.parametrize("seed", range(5))
def test_flags_say_what_was_drawn(seed: int) -> None:
    options = {"omit": (1, 2, 3, 7), "nemesis": (), "combine": False, "rate": 30.0}
    words = command_of(seed, options).split()[4:]
    assert words == as_words(options, FLAGS)
    assert "--omit 1-3,7" in " ".join(words)
    assert "--nemesis none" in " ".join(words)
    assert "--no-combine" in words
