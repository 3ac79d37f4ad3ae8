"""Options are declared once, and all else follows; `./maelstrom test`: flags, defaults, errors, statuses."""

import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from random import Random
from typing import Annotated, Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from bench import engine
from bench.commands import test as test_command
from bench.commands.main import cli, main
from bench.commands.test import OWN_PROGRAMS, warn_of_own_node
from bench.flags import COUNT, NUMBERS, Flag, click_options, flags_of, names_of, unit_of
from bench.flags import optional_click_options as optional
from bench.options import DEFAULT_NODES, FLAGS, TestOptions
from bench.sweep import plan
from bench.terminal import Console
from runs.faults import FAULTS
from simulation.scenario import DRAWS, OF_BENCH, Scenario
from simulation.scenario import FLAGS as SCENARIO_FLAGS


@pytest.fixture
def maelstrom(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Any]:
    """Run the command line without running a test; gives status, options and output."""
    program = tmp_path / "node"
    program.touch(mode=0o755)
    monkeypatch.delenv("MAELSTROM", raising=False)
    seen = []

    def remember(options: TestOptions, _console: Console) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(test_command, "run_test", remember)

    def run(*arguments: Path | int | str, node: Path | None = program) -> tuple[Any, ...]:
        seen.clear()
        words = [str(word) for word in arguments]
        if node and words[:1] == ["test"]:
            words[1:1] = ["--bin", str(node)]
        monkeypatch.setattr(sys, "argv", ["maelstrom", *words])
        try:
            main()
            status: Any = 0
        except SystemExit as ended:
            status = ended.code or 0
        captured = capsys.readouterr()
        return status, seen[0] if seen else None, captured.out + captured.err

    return run


DEFAULTS = {
    "workload": "lin-kv", "nodes": DEFAULT_NODES, "concurrency": 5, "rate": 5.0, "time_limit_s": 60,
    "latency_ms": 0, "latency_dist": "constant", "nemesis": (), "nemesis_interval_s": 10,
    "nemesis_targets": "mixed", "partition_shapes": ("one", "minority-third", "majority", "majorities-ring"),
    "key_count": None, "max_writes_per_key": 16, "max_txn_length": 4, "availability": None, "test_count": 1,
    "store": "results", "recovery_time_s": 10, "strict": False,
}  # fmt: skip


def test_defaults_are_those_of_the_real_tool(maelstrom: Callable[..., Any]) -> None:
    status, options, _ = maelstrom("test")
    assert (status, {name: getattr(options, name) for name in DEFAULTS}) == (0, DEFAULTS)
    assert options.seed


ALL_FLAGS = """
    -w kafka --node-count 3 --concurrency 2n --rate 99.5 --time-limit 7
    --latency 20 --latency-dist uniform --nemesis partition,kill --nemesis-interval 0.5
    --nemesis-targets all --partition-shapes bridge,one-way
    --key-count 4 --max-writes-per-key 5 --availability 0.9 --test-count 2
    --log-stderr --log-net-send --log-net-recv --leave-db-running --strict
    --topology line --consistency-models read-committed,PL-3
    --key-dist uniform --max-txn-length 2 --store s --seed x
    --recovery-time 1 -- --strategy cas -x
"""


GIVEN = {
    "nodes": ("n0", "n1", "n2"), "concurrency": 6, "rate": 99.5, "time_limit_s": 7, "latency_ms": 20,
    "latency_dist": "uniform", "nemesis": ("partition", "kill"), "nemesis_interval_s": 0.5,
    "nemesis_targets": "all", "partition_shapes": ("bridge", "one-way"), "key_count": 4,
    "max_writes_per_key": 5, "availability": 0.9, "args": ("--strategy", "cas", "-x"),
    "consistency_models": ("read-committed", "PL-3"), "topology": "line", "key_dist": "uniform",
    "max_txn_length": 2, "store": "s", "seed": "x", "recovery_time_s": 1, "log_stderr": True,
    "log_net_send": True, "log_net_recv": True, "leave_db_running": True, "strict": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (ALL_FLAGS.split(), GIVEN),
        (["--nemesis", "all"], {"nemesis": FAULTS}),
        (["--nemesis", "none"], {"nemesis": ()}),
        (["--nemesis", ""], {"nemesis": ()}),
        (["--nemesis", "kill, pause,kill"], {"nemesis": ("kill", "pause")}),
        (["--nodes", "a, b,d"], {"nodes": ("a", "b", "d")}),
        (["-n", "a", "--node", "b"], {"nodes": ("a", "b")}),
        (["--nodes-file", "FILE", "--nodes", "a"], {"nodes": ("x1", "x2", "a")}),
        (["--nodes", "a,b", "--node-count", "1"], {"nodes": ("n0",)}),
        (["--concurrency", "4"], {"concurrency": 4}),
        (["--concurrency", "3n"], {"concurrency": 15}),
        (["--concurrency", "1n"], {"concurrency": 5}),
        (["--availability", "total"], {"availability": "total"}),
        (["--availability", "1"], {"availability": 1.0}),
        (["--availability", "1/2"], {"availability": 0.5}),
    ],
)
def test_what_flags_mean(
    maelstrom: Callable[..., Any], tmp_path: Path, words: list[str], given: dict[str, Any]
) -> None:
    (tmp_path / "FILE").write_text("x1\nx2\n")
    _, options, _ = maelstrom(
        "test", *(tmp_path / word if word == "FILE" else word for word in words)
    )
    assert {name: getattr(options, name) for name in given} == given


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("--rate -1", "--rate"),
        ("--rate fast", "--rate"),
        ("--time-limit 0", "--time-limit"),
        ("--node-count 0", "--node-count"),
        ("--concurrency n", "integer, optionally followed by n"),
        ("--concurrency 0n", "--concurrency must be at least 1"),
        ("--latency -1", "--latency"),
        ("--latency-dist normal", "uniform"),
        ("--nemesis fire", "fire: must be one of partition, kill, pause, loss"),
        ("--nemesis-targets few", "--nemesis-targets"),
        ("--partition-shapes star", "star: must be one of one, minority-third"),
        ("--partition-shapes ,", "name at least one"),
        ("--nemesis-interval 0", "range x>0"),
        ("--availability 1/0", "1/0: must be total"),
        ("--availability 2", "must be total, or a number from 0 to 1, such as 0.5 or 1/2"),
        ("-w nothing", "must be one of broadcast, echo, g-counter, g-set, kafka, lin-kv"),
        ("--nodes a,a", "give each name once"),
        ("--nodes c1", "'c1' cannot name a node"),
        ("--nodes lin-kv,b", "'lin-kv' cannot name a node"),
        ("--no-such-flag", "--no-such-flag"),
        ("--consistency-models serialisable", "serialisable: must be one of"),
        ("-w kafak", "Did you mean kafka?"),
        ("--strategy cas", "stand after `--`: ./maelstrom test ... -- --strategy ..."),
        ("--time-limt 3", "Did you mean '--time-limit'?"),
        ("--consistency-models serialisable", "Did you mean serializable?"),
        ("--nemesis kill,,pause", "a name is missing beside a comma"),
        ("--nemesis kill,", "a name is missing beside a comma"),
        ("--nemesis kil", "Did you mean kill?"),
    ],
)
def test_bad_arguments_end_with_254_and_say_what_is_wrong(
    maelstrom: Callable[..., Any], arguments: str, part: str
) -> None:
    status, options, output = maelstrom("test", *arguments.split())
    assert (status, options) == (254, None)
    assert part in " ".join(output.split())


def test_a_program_is_needed(maelstrom: Callable[..., Any], tmp_path: Path) -> None:
    assert maelstrom("test", node=None)[0] == 254
    status, _, output = maelstrom("test", node=tmp_path / "missing")
    assert status == 254
    assert "there is no file" in output
    assert "is a folder" in maelstrom("test", node=tmp_path)[2]


@pytest.mark.parametrize("arguments", [["--help"], ["test", "--help"]])
def test_help_ends_well(maelstrom: Callable[..., Any], arguments: list[str]) -> None:
    status, _, output = maelstrom(*arguments)
    assert status == 0
    assert "Usage" in output


@pytest.mark.parametrize(
    ("words", "part"), [([], "Usage"), (["chek"], "No such command 'chek'. Did you mean check?")]
)
def test_without_a_known_command_it_says_what_there_is(
    maelstrom: Callable[..., Any], words: list[str], part: str
) -> None:
    status, _, output = maelstrom(*words)
    assert (status, part in " ".join(output.split())) == (254, True)


def test_the_first_line_names_the_engine_and_the_seed(maelstrom: Callable[..., Any]) -> None:
    output = maelstrom("test", "--seed", "abc")[2]
    assert output.splitlines()[0] == "engine: embedded (seed abc)"


def test_a_bench_that_breaks_ends_with_255(
    maelstrom: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_options: TestOptions, _console: Console) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(test_command, "run_test", broken)
    status, _, output = maelstrom("test")
    assert status == 255
    assert "ZeroDivisionError" in output


def test_the_verdict_is_the_exit_status_and_stops_a_series(
    maelstrom: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def invalid(_options: TestOptions, _console: Console) -> int:
        runs.append(1)
        return 1

    monkeypatch.setattr(test_command, "run_test", invalid)
    assert maelstrom("test", "--test-count", 3)[0] == 1
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (["--rate", "9"], "--rate 9 --seed"),
        (["--seed", "7", "--", "--x y"], "--seed 7 -- '--x y'"),
        (["--seed", "7", "--test-count=2", "--", "z"], "--test-count=2 --test-count 1 -- z"),
    ],
)
def test_a_failure_ends_with_the_command_that_repeats_it(
    maelstrom: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    again: str,
) -> None:
    monkeypatch.setattr(test_command, "run_test", lambda options, _console: 1)
    output = maelstrom("test", *words)[2]
    *_, line = output.splitlines()
    assert line.startswith("To repeat it: ./maelstrom test --bin ")
    assert again in line


def test_the_second_of_several_tests_is_repeated_alone(
    maelstrom: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def second_fails(options: TestOptions, console: Console) -> int:
        console.print("said")
        return int(options.seed.endswith("-2"))

    monkeypatch.setattr(test_command, "run_test", second_fails)
    file = tmp_path / "new/a.xml"
    status, _, output = maelstrom("test", "--seed", "7", "--test-count", 3, "--junit", file)
    assert status == 1
    assert output.splitlines()[-1].endswith("--seed 7-2 --test-count 1")
    (suite,) = ElementTree.parse(file).getroot()
    assert [(case.get("name"), [each.tag for each in case]) for case in suite] == [
        ("seed 7", []),
        ("seed 7-2", ["failure"]),
    ]
    (failure,) = suite.iter("failure")
    assert failure.text
    assert failure.text.splitlines()[0] == "said"


Started = list[tuple[Path, list[str]]]


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maelstrom: object) -> Started:
    """A real tool that MAELSTROM names; gives what was started of it."""
    (tmp_path / "maelstrom").touch(mode=0o755)
    monkeypatch.setenv("MAELSTROM", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _name: "/usr/bin/java")
    started: Started = []

    def execv(path: Path, words: list[str]) -> None:
        started.append((path, words))
        sys.exit(0)

    monkeypatch.setattr(os, "execv", execv)
    return started


@pytest.mark.parametrize("by_folder", [True, False])
def test_the_real_tool_runs_when_it_is_named(
    maelstrom: Callable[..., Any],
    real: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    by_folder: bool,
) -> None:
    script = tmp_path / "maelstrom"
    monkeypatch.setenv("MAELSTROM", str(tmp_path if by_folder else script))
    status, options, output = maelstrom("test", "--seed", "7", "-w", "kafka", "--strict")
    assert (status, options) == (0, None)
    assert output.startswith("engine: the real Maelstrom")
    ((path, words),) = real
    assert (path, words[1], words[-2:]) == (script, "test", ["-w", "kafka"])
    assert maelstrom("test", "--engine", "embedded")[1] is not None


@pytest.mark.parametrize(
    ("named", "arguments", "said"),
    [
        (None, ["--engine", "jepsen"], ["releases", "Java 17"]),
        ("/nowhere", [], ["is no program"]),
    ],
)
def test_the_real_tool_must_be_named_and_there(
    maelstrom: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    named: str | None,
    arguments: list[str],
    said: list[str],
) -> None:
    if named:
        monkeypatch.setenv("MAELSTROM", named)
    status, _, output = maelstrom("test", *arguments)
    assert (status, [part for part in said if part not in output]) == (254, [])


@pytest.mark.parametrize(
    "arguments", ["--nemesis partition,loss", "--nemesis-targets one", "--partition-shapes bridge"]
)
def test_faults_of_ours_are_refused_before_the_real_tool_starts(
    maelstrom: Callable[..., Any], real: Started, arguments: str
) -> None:
    status, _, output = maelstrom("test", *arguments.split())
    assert (status, real) == (254, [])
    assert f"{arguments.replace('partition,', '')}: the real Maelstrom has only" in output
    assert maelstrom("test", "--engine", "embedded", *arguments.split())[0] == 0


RELEASE = "maelstrom/db$db$reify__123.class"  # what the jar of a release has of the file that starts nodes


@pytest.mark.parametrize(
    ("compiled", "status"),
    [(b"jepsen/db/DB", 254), (b"jepsen/db/DB jepsen/db/Kill jepsen/db/Pause", 0), (None, 0)],
)
def test_kill_and_pause_are_for_a_real_tool_that_has_them(
    maelstrom: Callable[..., Any],
    real: Started,
    tmp_path: Path,
    compiled: bytes | None,
    status: int,
) -> None:
    if compiled:
        (tmp_path / "lib").mkdir()
        with zipfile.ZipFile(tmp_path / "lib/maelstrom.jar", "w") as jar:
            jar.writestr(RELEASE, compiled)
    arguments = ["--nemesis", "kill,pause", "--nemesis-interval", "5"]
    done, _, output = maelstrom("test", *arguments)
    assert done == status
    assert ("--nemesis kill,pause: " in output and "of before July 2026" in output) is bool(status)
    assert [words[-4:] for _, words in real] == ([] if status else [arguments])


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


# ----------------------------------------------------------------


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
            assert flag.axis in plan.NAMES
            assert plan.complaint(word, 1) == f"write `{flag.axis}`"
        elif not flag.hidden and not flag.unswept:
            assert word in plan.NAMES
