"""Options are declared once, and all else follows; its command line: see `tests/datadriven/benches`, too."""

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from random import Random
from typing import Annotated, Any

import click
import pytest
from click.testing import CliRunner

from bench import engine
from bench.commands.main import cli, main
from bench.commands.test import OWN_PROGRAMS, warn_of_own_node
from bench.flags import COUNT, NUMBERS, Flag, click_options, flags_of, names_of, unit_of
from bench.flags import optional_click_options as optional
from bench.options import FLAGS, TestOptions
from bench.sweep import axes
from bench.terminal import Console
from simulation.scenario import DRAWS, OF_BENCH, Scenario
from simulation.scenario import FLAGS as SCENARIO_FLAGS

DEFAULTS = {
    "workload": "lin-kv", "rate": 5.0, "time_limit_s": 60,
    "latency_ms": 0, "latency_dist": "constant", "nemesis": (), "nemesis_interval_s": 10,
    "nemesis_targets": "mixed", "partition_shapes": ("one", "minority-third", "majority", "majorities-ring"),
    "key_count": None, "max_writes_per_key": 16, "max_txn_length": 4, "availability": None, "test_count": 1,
    "store": "results", "recovery_time_s": 10, "strict": False,
}  # fmt: skip


def test_defaults_are_those_of_the_real_tool() -> None:
    """Those of nodes and concurrency are in `tests/datadriven/benches`."""
    assert {each.name: each.default for each in fields(TestOptions)}.items() >= DEFAULTS.items()


def test_without_a_command_it_says_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["maelstrom"])
    with pytest.raises(SystemExit, match="254"):
        main()
    assert "Usage" in capsys.readouterr().err


def test_only_our_own_flags_are_kept_from_the_real_tool() -> None:
    line = (
        "test --seed 1 --store=x --strict --rate 5 --engine jepsen --recovery-time 3"
        " --nemesis-targets mixed -- --seed 2"
    )
    assert " ".join(engine.real_arguments(line.split())) == "test --rate 5 -- --seed 2"


# ---------------------------------------------------------------- slips of the hand


OWN_NODE = str(Path(__file__).parents[2] / "run.sh")


@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_terminal_and_lists_choices(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for command in ("test", "sweep", "simulate", "check", "serve"):
        told = CliRunner().invoke(cli, [command, "--help"], terminal_width=width).stdout
        assert max(map(len, told.splitlines())) <= width, command
    told = " ".join(CliRunner().invoke(cli, ["test", "--help"]).stdout.split())
    for choice in ("unique-ids", "kafka", "fence", "exponential", "tree4", "strict-serializable"):
        assert choice in told.replace("- ", "-")
    assert "[-- OPTIONS OF THE NODE]" in told


def test_our_node_is_told_that_it_serves_kafka_alone(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=200)
    warn_of_own_node(OWN_NODE, "lin-kv", console)
    assert "run.sh serves the workload kafka alone" in capsys.readouterr().out
    warn_of_own_node(OWN_NODE, "kafka", console)
    warn_of_own_node("/elsewhere/run.sh", "lin-kv", console)
    assert capsys.readouterr().out == ""
    assert all(program.exists() for program in OWN_PROGRAMS)


# ---------------------------------------------------------------- declarations


@dataclass
class Record:
    wait_ms: Annotated[int, Flag("How long.", COUNT)] = 3
    loud: Annotated[bool, Flag("How.", ours=True)] = False
    names: Annotated[tuple[str, ...], Flag("Which.", names_of(("a", "b")))] = ()
    plain: str = "no option"


def parse(decorate: Callable[..., Any], *words: str) -> dict[str, Any]:
    command = click.command()(decorate(lambda **flags: flags))
    given: dict[str, Any] = command.main(list(words), standalone_mode=False)
    return given


def test_a_field_becomes_an_option_with_its_word_kind_and_default() -> None:
    flags = flags_of(Record)
    decorate = click_options(flags, {"wait_ms": 3, "loud": False, "names": ()})
    assert [flag.words for flag in flags.values()] == [("--wait",), ("--loud",), ("--names",)]
    assert parse(decorate) == {"wait_ms": 3, "loud": False, "names": ()}
    assert parse(decorate, "--wait", "7", "--loud", "--names", "b, a,b") == {
        "wait_ms": 7,
        "loud": True,
        "names": ("b", "a"),
    }


def test_an_optional_option_that_is_not_given_is_none() -> None:
    decorate = optional(flags_of(Record))
    assert parse(decorate) == {"wait_ms": None, "loud": None, "names": None}
    assert parse(decorate, "--no-loud")["loud"] is False


def test_the_help_shows_the_unit_and_whose_option_it_is() -> None:
    command = click.command()(click_options(flags_of(Record), {})(lambda **_: None))
    shown = command.get_help(click.Context(command))
    assert "--wait MS" in shown
    assert "How. (ours)" in shown


@pytest.mark.parametrize(
    ("words", "error"),
    [(["--wait", "0"], "range x>=1"), (["--names", "c"], "c: must be one of a, b, or all or none")],
)
def test_an_error_comes_from_the_declaration(words: list[str], error: str) -> None:
    with pytest.raises(click.BadParameter, match=error):
        parse(click_options(flags_of(Record), {}), *words)


def test_known_names_come_before_words_for_all_and_none() -> None:
    kind = names_of(("none", "all", "kill"))
    assert kind.convert("none,all", None, None) == ("none", "all")


@pytest.mark.parametrize(
    ("name", "unit"), [("time_limit_s", "seconds"), ("think_us", "microseconds"), ("rate", None)]
)
def test_a_name_may_end_with_its_unit(name: str, unit: str | None) -> None:
    assert unit_of(name) == unit


def test_numbers_and_ranges() -> None:
    assert NUMBERS.convert("3,5-7,6", None, None) == (3, 5, 6, 7)


def test_every_field_is_declared() -> None:
    assert {each.name for each in fields(TestOptions)} - FLAGS.keys() == {"args"}
    assert {each.name for each in fields(Scenario)} - SCENARIO_FLAGS.keys() == {"seed"}
    assert DRAWS.keys() <= SCENARIO_FLAGS.keys()


def test_a_scenario_takes_words_and_help_from_the_bench() -> None:
    for name in OF_BENCH:
        assert SCENARIO_FLAGS[name].words == FLAGS[name].words
        assert SCENARIO_FLAGS[name].help == FLAGS[name].help


@pytest.mark.parametrize("seed", range(30))
def test_a_drawn_scenario_is_what_its_command_says(seed: int) -> None:
    scenario = Scenario.draw(seed)
    words = scenario.command().split()[4:]
    read = parse(optional(SCENARIO_FLAGS), *words)
    given = {name: value for name, value in read.items() if value is not None}
    assert Scenario(seed, **given) == scenario


@pytest.mark.parametrize("name", [name for name in DRAWS if DRAWS[name].lower is not None])
def test_what_an_option_is_reduced_to_is_allowed(name: str) -> None:
    default = next(each.default for each in fields(Scenario) if each.name == name)
    assert default is not MISSING
    for value in (*(DRAWS[name].lower or ()), default, DRAWS[name].draw(Random(1))):
        kind = SCENARIO_FLAGS[name].kind
        assert kind
        assert kind.convert(value, None, None) == value


def test_a_sweep_knows_each_flag_by_one_name() -> None:
    for name, flag in FLAGS.items():
        word = flag.words[-1].removeprefix("--")
        if flag.axis and name not in ("nodes", "name"):  # a sweep has names of its own for these
            assert flag.axis in axes.NAMES
            assert axes.complaint(word, 1) == f"write `{flag.axis}`"
        elif not flag.hidden and not flag.unswept:
            assert word in axes.NAMES
