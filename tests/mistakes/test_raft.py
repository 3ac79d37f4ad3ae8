"""The example of Raft is right, and each of six mistakes in it is found from a seed, by its operations."""

import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench.options import TestOptions, from_flags
from simulation.commands.simulate_node import run_seed, simulate_node
from tests.mistakes.mistake import Mistake
from tests.programs import ROOT

EXAMPLES = ROOT / "workloads/examples"
RAFT = EXAMPLES / "lin_kv_raft.py"
SEEDS = 50  # within which each mistake is found
ROWS = tomllib.loads(Path(__file__).with_name("raft.toml").read_text())["raft"]
SOUND = [
    "--nemesis partition",
    "--nemesis kill",
    "--nemesis pause",
    "--nemesis membership --nemesis-targets minority --nemesis-interval 3",
]


def options_of(script: Path, flags: str, seed: int) -> TestOptions:
    words = ["--bin", str(script), "-w", "lin-kv", "--seed", str(seed), *shlex.split(flags)]
    given = simulate_node.make_context("simulate", words).params
    return from_flags(
        {name: given[name] for name in given if name not in ("seeds", "jobs", "shrink")}
    )


def changed(folder: Path, changes: list[list[str]]) -> Path:
    """The example with these changes, each of which is made once, and the kit beside it."""
    text = RAFT.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    shutil.copy(EXAMPLES / "maelstrom_node.py", folder)
    script = folder / "lin_kv_raft.py"
    script.write_text(text)
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["because"])
def test_a_mistake_is_found_and_its_operations_are_named(
    row: dict[str, Any], tmp_path: Path
) -> None:
    assert row["seed"] < SEEDS
    script = changed(tmp_path, row["changes"])
    found = run_seed(options_of(script, row["flags"], row["seed"]))
    assert Mistake(row["because"], row["said"]).is_told_by(found.why), found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["because"])
def test_without_the_mistake_the_same_run_is_valid(row: dict[str, Any]) -> None:
    found = run_seed(options_of(RAFT, row["flags"], row["seed"]))
    assert (found.verdict, found.why) == ("valid", "")


@pytest.mark.parametrize("faults", SOUND)
def test_the_example_is_right_under_faults(faults: str) -> None:
    flags = (
        f"--node-count 5 --concurrency 2n --rate 30 --time-limit 10 --nemesis-interval 1 {faults}"
    )
    for seed in range(3):
        found = run_seed(options_of(RAFT, flags, seed))
        assert (found.verdict, found.why) == ("valid", "")
