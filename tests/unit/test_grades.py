"""What the challenges ask; `tests/datadriven/benches/glomers.txt` has the grades of nodes."""

import shlex

import pytest

from bench import glomers
from bench.glomers import Challenge
from bench.sweep.axes import arguments
from tests.programs import ROOT


def challenge(number: str) -> Challenge:
    return glomers.read(number, 1, {"bin": str(ROOT / "run.sh")})


@pytest.mark.parametrize(
    ("number", "command"),
    [
        ("1", "-w echo --node-count 1 --time-limit 10"),
        (
            "2",
            "-w unique-ids --time-limit 30 --rate 1000 --node-count 3 --availability total --nemesis partition",
        ),
        ("3a", "-w broadcast --node-count 1 --time-limit 20 --rate 10"),
        ("3b", "-w broadcast --node-count 5 --time-limit 20 --rate 10"),
        ("3c", "-w broadcast --node-count 5 --time-limit 20 --rate 10 --nemesis partition"),
        ("3d", "-w broadcast --node-count 25 --time-limit 20 --rate 100 --latency 100"),
        ("3e", "-w broadcast --node-count 25 --time-limit 20 --rate 100 --latency 100"),
        ("4", "-w g-counter --node-count 3 --rate 100 --time-limit 20 --nemesis partition"),
        ("5a", "-w kafka --node-count 1 --concurrency 2n --time-limit 20 --rate 1000"),
        ("5b", "-w kafka --node-count 2 --concurrency 2n --time-limit 20 --rate 1000"),
        ("5c", "-w kafka --node-count 2 --concurrency 2n --time-limit 20 --rate 1000"),
        (
            "6a",
            "-w txn-rw-register --node-count 1 --time-limit 20 --rate 1000 --concurrency 2n"
            " --consistency-models read-uncommitted --availability total",
        ),
        (
            "6b",
            "-w txn-rw-register --node-count 2 --concurrency 2n --time-limit 20 --rate 1000"
            " --consistency-models read-uncommitted",
        ),
        (
            "6c",
            "-w txn-rw-register --node-count 2 --concurrency 2n --time-limit 20 --rate 1000"
            " --consistency-models read-committed --availability total --nemesis partition",
        ),
        (
            "7",
            "-w lin-kv --node-count 5 --concurrency 2n --time-limit 20 --rate 30 --availability 0.5",
        ),
    ],
)
def test_what_is_asked_is_the_command_that_the_challenge_prints(number: str, command: str) -> None:
    check = next(each for each in challenge(number).checks if each.asked)
    assert check.name == glomers.AS_ASKED
    words, _ = arguments(check.cell.axes)
    assert pairs(words) == pairs(shlex.split(command.replace("-w", "--workload", 1)))


def pairs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(words[::2], words[1::2], strict=True))


def test_every_challenge_can_be_read_and_asks_more_than_it_must() -> None:
    for number in glomers.numbers():
        checks = challenge(number).checks
        assert {each.asked for each in checks} == {True, False}
        assert len({each.name for each in checks}) == len(checks)
