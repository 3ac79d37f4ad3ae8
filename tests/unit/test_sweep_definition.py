"""A sweep's file: its cells, and what is said of a file that cannot be meant."""

import tomllib
from pathlib import Path

import click
import pytest

from bench.sweep import axes
from bench.sweep.definition import KEYS, parse, read, restrict, value_of
from runs.faults import FAULTS

FILE = Path("sweeps/night.toml")
SHIPPED = sorted((Path(__file__).parents[2] / "sweeps").glob("*.toml"))


def sweep(text, **changes):
    return parse(tomllib.loads(text), FILE, changes)


def titles(found):
    return [cell.title for cell in found.cells]


def test_a_matrix_is_the_product_of_its_lists_the_last_one_turning_fastest():
    found = sweep("[base]\nworkload = 'kafka'\n[[matrix]]\nnodes = [3, 5]\nrate = [10, 20.5]")
    assert found.name == "night"
    assert found.varied == ["nodes", "rate"]
    assert titles(found) == [f"nodes={n} rate={r}" for n in (3, 5) for r in (10, 20.5)]
    assert [cell.options.rate for cell in found.cells] == [10, 20.5, 10, 20.5]
    assert {cell.options.workload for cell in found.cells} == {"kafka"}


def test_matrices_follow_each_other_and_override_the_base():
    found = sweep(
        """
        repetitions = 3
        [base]
        nodes = 3
        strategy = "cas"
        [[matrix]]
        [[matrix]]
        nodes = 5
        expect = "invalid"
        """
    )
    assert found.repetitions == 3
    assert [(len(c.options.nodes), c.expect) for c in found.cells] == [
        (3, "valid"),
        (5, "invalid"),
    ]
    assert {cell.options.args for cell in found.cells} == {("--strategy", "cas")}


def test_a_file_without_anything_is_one_cell():
    assert titles(sweep("")) == ["the only cell"]


def test_a_cell_that_comes_twice_runs_once():
    assert titles(sweep("[[matrix]]\nnodes = [3, 5]\n[[matrix]]\nnodes = 3")) == [
        "nodes=3",
        "nodes=5",
    ]


def test_words_for_faults():
    found = sweep('[[matrix]]\nfaults = ["none", "each", "all"]\nfault-interval = 0.5')
    assert [cell.options.nemesis for cell in found.cells] == list(
        dict.fromkeys([(), *((fault,) for fault in FAULTS), tuple(FAULTS)])
    )
    assert {cell.options.nemesis_interval_s for cell in found.cells} == {0.5}


def test_arguments_for_the_node_come_last():
    cell = {
        "args": "--memory-mib 16",
        "strategy": "cas",
        "freshness": 0,
        "strict": True,
        "name": "x",
    }
    assert axes.arguments(cell | {"log-stderr": False, "rate": 5}) == (
        ["--strict", "--rate", "5"],
        ["--memory-mib", "16", "--strategy", "cas", "--freshness", "0"],
    )


def test_a_program_is_sought_from_the_folder_of_the_sweep(tmp_path):
    (tmp_path / "node").touch()
    (tmp_path / "own.toml").write_text("[base]\nbin = 'node'")
    assert read(tmp_path / "own.toml").cells[0].options.bin == str(tmp_path / "node")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nodes = 3", ["nodes: there is no such key", "[base]"]),
        ("repetitions = 0", ["repetitions", "whole number"]),
        ("base = 3", ["base", "[base]"]),
        ("matrix = 3", ["matrix", "[[matrix]]"]),
        ("[base]\nspeed = 3", ["[base]: speed", "write one of", "rate"]),
        ("[base]\nnode-count = 3", ["[base]: node-count", "write `nodes`"]),
        ("[base]\nstore = 'x'", ["[base]: store", "--store"]),
        ("[base]\ntest-count = 3", ["test-count", "repetitions"]),
        ("[base]\nnodes = 'three'", ["[base]: nodes", "'three'"]),
        ("[base]\nnodes = true", ["[base]: nodes", "its value"]),
        ("[base]\nstrict = 'yes'", ["[base]: strict", "true or false"]),
        ("[base]\nexpect = 'bad'", ["expect", "valid, invalid, any"]),
        ('[base]\nargs = "it\'s"', ["[base]: args", "as for a shell"]),
        ("[base]\nrate = []", ["[base]: rate", "a single value"]),
        ("[base]\nrate = [[1]]", ["[base]: rate", "no single value"]),
        ("[[matrix]]\n[[matrix]]\nlatency = [1, -5]", ["[[matrix]] 2: latency", "-5"]),
        ("[[matrix]]\nlatency-dist = 'normal'", ["[[matrix]] 1: latency-dist", "uniform"]),
        ("[[matrix]]\nfaults = 'fire'", ["faults", "fire", "partition"]),
        ("[[matrix]]\nnodes = 2\nconcurrency = '0n'", ["[[matrix]] 1", "--concurrency"]),
        ("[base]\nbin = 'missing'", ["[[matrix]] 1", "sweeps/missing", "path to your node"]),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_place(text, parts):
    with pytest.raises(click.UsageError) as told:
        sweep(text)
    assert told.value.message.startswith(str(FILE))
    for part in parts:
        assert part in told.value.message


def test_a_file_that_is_no_sweep(tmp_path):
    with pytest.raises(click.UsageError, match="cannot be read"):
        read(tmp_path / "missing.toml")
    (tmp_path / "broken.toml").write_text("[base")
    with pytest.raises(click.UsageError, match="is no TOML"):
        read(tmp_path / "broken.toml")


def test_changes_replace_what_the_file_says_in_every_cell():
    found = sweep("[base]\nrate = 5\n[[matrix]]\nnodes = [3, 5]\n", rate=7, nodes=2)
    assert [(cell.options.rate, len(cell.options.nodes)) for cell in found.cells] == [(7, 2)]
    with pytest.raises(click.UsageError, match="--set: rate"):
        sweep("", rate="fast")


def test_a_sweep_can_be_narrowed():
    found = sweep("[[matrix]]\nnodes = [3, 5]\nfaults = ['none', 'all']")
    assert titles(restrict(found, {"nodes": [5], "faults": ["none"]})) == ["nodes=5 faults=none"]
    assert restrict(found, {"nodes": [5]}).varied == ["faults"]
    assert len(restrict(found, {"nodes": [3, 5]}).cells) == 4
    with pytest.raises(click.UsageError, match="nodes=3"):
        restrict(found, {"nodes": [9]})


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ("2n", "2n"), ("kill,pause", "kill,pause"), ("", "")],
)
def test_values_on_a_command_line(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_sweeps_that_are_shipped_can_be_run(file):
    found = read(file)
    assert found.about
    assert len(found.cells) > 1


def test_the_document_lists_every_key():
    document = (Path(__file__).parents[2] / "docs/sweeps.md").read_text()
    own = {axis.name: axis.help for axis in axes.OWN_AXES}
    for name, told in (KEYS | own | axes.MORE).items():
        assert f"| `{name}` | {told} |" in document


def test_the_example_of_the_document_is_a_sweep():
    document = (Path(__file__).parents[2] / "docs/sweeps.md").read_text()
    example = document.partition("```toml\n")[2].partition("```")[0]
    assert len(sweep(example).cells) == 2 * (1 + len(FAULTS)) + 1
