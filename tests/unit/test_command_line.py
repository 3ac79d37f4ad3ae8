"""What the command line says to a slip of the hand: what is wrong, and what to write."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from commands.main import cli, main
from commands.test import OWN_PROGRAMS, warn_of_own_node

OWN_NODE = str(Path(__file__).parents[2] / "run.sh")
TEST = ("test", "-w", "kafka", "--bin", OWN_NODE)


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What the program prints of its arguments before it gives up."""
    monkeypatch.setattr("sys.argv", ["maelstrom", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 254
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("test", "-w", "kafak", "--bin", OWN_NODE), "Did you mean kafka?"),
        ((*TEST, "--strategy", "cas"), "stand after `--`: ./maelstrom test ... -- --strategy ..."),
        ((*TEST, "--time-limt", "3"), "Did you mean '--time-limit'?"),
        ((*TEST, "--consistency-models", "foo"), "foo: must be one of "),
        ((*TEST, "--consistency-models", "serialisable"), "Did you mean serializable?"),
        ((*TEST, "--nemesis", "kill,,pause"), "a name is missing beside a comma"),
        ((*TEST, "--nemesis", "kill,"), "a name is missing beside a comma"),
        ((*TEST, "--nemesis", "kil"), "Did you mean kill?"),
        (("chek", "results/latest"), "No such command 'chek'. Did you mean check?"),
    ],
)
def test_it_says_what_to_write(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    part: str,
) -> None:
    assert part in said(capsys, monkeypatch, *words)


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
