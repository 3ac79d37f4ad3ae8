"""The grade of a node from its runs, and `./maelstrom glomers` with runs that are told, not made."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner, Result

from bench import glomers
from bench.commands.glomers import glomers as command
from bench.commands.sweep import exit_status
from bench.glomers import Challenge, Graded, grade, verdict
from bench.sweep import making, plan
from bench.sweep.plan import Job, arguments
from runs import sweeps
from runs.sweeps import CRASHED, INVALID, UNKNOWN, VALID, Row

ROOT = Path(__file__).parents[2]
GOOD = {"valid": 1.0, "server_messages_per_op": 1.02, "ok_fraction_of_all": 1.0}
CHEAP = GOOD | {"stable_median_ms": 374.0, "stable_most_ms": 500.0, "invoked_ops_per_s": 99.0}
WRONG = GOOD | {"valid": 0.0}


def challenge(number: str, seeds: int = 3) -> Challenge:
    return glomers.read(number, seeds, {"bin": str(ROOT / "run.sh")})


def run(
    chosen: Challenge,
    name: str,
    seed: int,
    outcome: str = VALID,
    /,
    *anomalies: str,
    **figures: float,
) -> Row:
    """A run of a check from a seed, as it ended."""
    (job,) = (
        job
        for job in plan.jobs(chosen.sweep, "embedded")
        if (job.cell.title, job.repetition) == (name, seed)
    )
    known = (GOOD if outcome == VALID else WRONG) | figures
    return Row(
        *(job.sweep, dict(job.cell.axes), seed, job.engine, "run", outcome),
        figures=dict(known),
        anomalies=list(anomalies),
    )


def runs(chosen: Challenge, **more: float) -> list[Row]:
    """Every run of a challenge, each valid."""
    jobs = plan.jobs(chosen.sweep, "embedded")
    return [run(chosen, job.cell.title, job.repetition, **more) for job in jobs]


def with_runs(rows: list[Row], *others: Row) -> list[Row]:
    """The rows with some of them replaced."""
    return list(({row.key: row for row in rows} | {row.key: row for row in others}).values())


def told(chosen: Challenge, rows: list[Row]) -> tuple[str, int]:
    """The sentence and the exit status."""
    graded = grade(chosen, rows)
    asked = [row for each in graded if each.check.asked for row in each.rows]
    return verdict(chosen.number, graded), exit_status(asked)


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


def test_options_of_the_node_and_the_topology_reach_every_check() -> None:
    changes = {"bin": "/bin/cat", "args": "--wait 0.15", "topology": "tree4"}
    for check in glomers.read("3e", 1, changes).checks:
        assert check.cell.options.args == ("--wait", "0.15")
        assert check.cell.options.topology == "tree4"


ALL = (1, 2, 3)
ASKED, KILL, CUT = "as asked", "after a kill", "in partitions"
NO_SUM = "a node shows a wrong sum at the end"
Other = tuple[str, Sequence[int], str, Sequence[str], Mapping[str, float]]
# A challenge; its runs that are not right: a check, seeds, verdict, anomalies and figures; whether all others
# are there; the sentence, whole or (...) its beginning; and the exit status.
GRADES: list[tuple[str, list[Other], bool, str, int]] = [
    ("5c", [], True, f"5c passes; right {CUT}, at 100 ms a hop, {KILL}.", 0),
    # What fails beyond the challenge is told and is no failure.
    ("5c", [(KILL, ALL, INVALID, ["lost-write"], {})], True,
     f"5c passes; right {CUT}, at 100 ms a hop; not durable: an acknowledged message is gone {KILL}.", 0),
    # Only a kill shows that something is not durable.
    ("5c", [(CUT, [2], INVALID, ["lost-write"], {})], True,
     f"5c passes; right at 100 ms a hop, {KILL}; an acknowledged message is gone {CUT}"
     " (right on 2 of 3 seeds).", 0),
    ("3c", [(ASKED, [2], INVALID, [], {})], True,
     "3c passes by luck: right on 2 of 3 seeds, else a node lacks an acknowledged message;...", 1),
    # A node that fails on every seed is not tried beyond.
    ("5b", [(ASKED, ALL, INVALID, ["poll-skip", "duplicate"], {})], False,
     "5b fails: one message has two offsets.", 1),
    # A run without a verdict is neither passed nor failed.
    ("4", [(ASKED, [3], UNKNOWN, [], {})], True, "4 is unknown: nothing wrong was found...", 2),
    ("4", [(ASKED, [3], CRASHED, [], {})], True,
     "4 is not passed: a run could not be finished...", 255),
    ("4", [(KILL, [3], UNKNOWN, [], {})], True,
     f"4 passes; right at 100 ms a hop; nothing wrong was found, but not everything can be judged {KILL}"
     " (right on 2 of 3 seeds).", 0),
    ("4", [(KILL, [3], CRASHED, [], {})], True,
     f"4 passes; right at 100 ms a hop; a run could not be finished {KILL} (right on 2 of 3 seeds).", 0),
    # A failure counts more than a run without a verdict.
    ("4", [(ASKED, [1], UNKNOWN, [], {}), (ASKED, [2], INVALID, [], {}), (ASKED, [3], CRASHED, [], {})],
     True, f"4 fails: {NO_SUM}; right {KILL}, at 100 ms a hop.", 1),
    ("1", [(ASKED, [1], VALID, [], {})], False, "1 is unknown: not every run was made.", 0),
    # A history that is right may be invalid for other reasons.
    ("2", [(ASKED, [1], INVALID, [], {"valid": 1.0, "ok_fraction_of_all": 0.9871})], True,
     "2 passes by luck: right on 2 of 3 seeds, else only 98.7% of the operations succeed;...", 1),
    ("4", [(ASKED, [1], INVALID, [], {"valid": 1.0})], True,
     "4 passes by luck: right on 2 of 3 seeds, else a kind of operation never succeeds;...", 1),
    # Anomalies without words of their own are named.
    ("6c", [(ASKED, ALL, INVALID, ["G1a", "G1b"], {})], False, "6c fails: it shows G1a, G1b.", 1),
    # Bounds hold for what is asked alone.
    ("3d", [(CUT, ALL, VALID, [], {"stable_most_ms": 9000.0}), (ASKED, ALL, VALID, [], CHEAP)], True,
     "3d passes;...", 0),
]  # fmt: skip


@pytest.mark.parametrize(("number", "others", "whole", "sentence", "status"), GRADES)
def test_what_is_asked_decides_and_what_lies_beyond_is_told(
    number: str, others: list[Other], whole: bool, sentence: str, status: int
) -> None:
    chosen = challenge(number)
    changed = [
        run(chosen, name, seed, outcome, *anomalies, **figures)
        for name, seeds, outcome, anomalies, figures in others
        for seed in seeds
    ]
    said, found = told(chosen, with_runs(runs(chosen) if whole else [], *changed))
    assert said == sentence or (sentence.endswith("...") and said.startswith(sentence[:-3]))
    assert found == status


@pytest.mark.parametrize(
    ("figures", "trouble"),
    [
        ({}, ""),
        ({"server_messages_per_op": 30.0}, "server messages/op 30.00, not below 30"),
        ({"stable_median_ms": 400.0}, "median stable latency 400 ms, not below 400"),
        ({"stable_most_ms": 794.0}, "longest stable latency 794 ms, not below 600"),
    ],
)
def test_each_run_must_stay_below_the_bounds(figures: dict[str, float], trouble: str) -> None:
    chosen = challenge("3d")
    rows = runs(chosen, **CHEAP)
    slow = run(chosen, "as asked", 2, **(CHEAP | figures))
    sentence, status = told(chosen, with_runs(rows, slow))
    assert status == bool(figures)
    assert sentence.startswith(
        f"3d passes by luck: right on 2 of 3 seeds, else {trouble};" if trouble else "3d passes;"
    )


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({"invoked_ops_per_s": 99.0}, "nothing wrong was found, but"),  # no stable latencies
        (CHEAP | {"invoked_ops_per_s": 62.0}, "only invoked/s 62, and it takes 90 for a grade"),
        (CHEAP | {"invoked_ops_per_s": 62.0, "stable_most_ms": 9000.0}, "only invoked/s 62, and"),
    ],
)
def test_without_a_figure_or_the_load_there_is_no_grade(
    figures: dict[str, float], why: str
) -> None:
    chosen = challenge("3e")
    sentence, status = told(chosen, runs(chosen, **figures))
    assert sentence.startswith(f"3e is unknown: {why}")
    assert status == 2


def test_a_line_says_when_operations_fail_and_the_highest_figures_with_their_bounds() -> None:
    chosen = challenge("5c")
    rows = [
        run(chosen, "in partitions", 1),
        run(chosen, "in partitions", 2, ok_fraction_of_all=0.934),
    ]
    assert Graded(chosen.checks[1], rows, seeds=2).line() == (
        "✔ in partitions: right on 2 of 2 seeds; 93.4% of the operations succeed; server messages/op 1.02"
    )
    chosen = challenge("3d")
    (check, *_) = chosen.checks
    rows = [
        run(chosen, "as asked", seed, **CHEAP | {"server_messages_per_op": 20.0 + seed})
        for seed in (1, 2)
    ]
    assert Graded(check, rows, seeds=2).line() == (
        "✔ as asked: right on 2 of 2 seeds; server messages/op 22.00 (below 30);"
        " median stable latency 374 ms (below 400); longest stable latency 500 ms (below 600)"
    )
    assert Graded(check, rows, seeds=3).line().startswith("? as asked: right on 2 of 3 seeds; not")


# ----------------------------------------------------------------


NODE = Path(__file__).parents[2] / "workloads/examples/g_counter.py"
Perform = Callable[[Job, Path, object], Row]


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Grade by challenge 4; `verdict_of` says how a run ends, by its check and its seed."""
    monkeypatch.chdir(tmp_path)

    def grade(verdict_of: Callable[[str, int], str], *words: str) -> Result:
        def perform(job: Job, _parent: Path, _tick: object) -> Row:
            verdict = verdict_of(job.cell.title, job.repetition)
            found: dict[str, float | None] = {
                "valid": float(verdict == VALID),
                "server_messages_per_op": 2.0,
            }
            return Row(
                *(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run", verdict),
                seconds=1.5,
                figures=found,
            )

        monkeypatch.setattr(making, "perform", perform)
        return CliRunner().invoke(command, ["4", "--bin", str(NODE), *words])

    return grade


def only_after_kills(check: str, _seed: int) -> str:
    return INVALID if check == "after a kill" else VALID


def test_a_pass_says_what_lies_beyond_and_how_to_repeat_it(graded: Callable[..., Result]) -> None:
    done = graded(only_after_kills, "--seeds", "2", "--junit", "a.xml", "--", "--wait", "1 s")
    assert done.exit_code == 0
    *_, line = done.output.splitlines()
    assert line == (
        "4 passes; right at 100 ms a hop; a node shows a wrong sum at the end after a kill."
    )
    (repeat,) = [line for line in done.output.splitlines() if line.startswith("    repeat")]
    assert "--seed glomers-4 " in repeat
    assert repeat.endswith("-- --wait '1 s'")
    assert len(sweeps.read(Path("results/glomers-4"))) == 6
    (suite,) = ElementTree.parse("a.xml").getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "0", "0", "2"]
    assert {each.get("message") for each in suite.iter("skipped")} == {
        "a node shows a wrong sum at the end after a kill"
    }


def test_a_failure_on_every_seed_ends_it(graded: Callable[..., Result]) -> None:
    done = graded(lambda *_: INVALID, "--seeds", "2", "--junit", "a.xml")
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == "4 fails: a node shows a wrong sum at the end."
    assert len(sweeps.read(Path("results/glomers-4"))) == 2, "nothing beyond was run"
    (suite,) = ElementTree.parse("a.xml").getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["6", "2", "0", "4"]


def test_luck_is_a_failure(graded: Callable[..., Result]) -> None:
    done = graded(lambda _check, seed: INVALID if seed == 2 else VALID)
    assert done.exit_code == 1
    assert "4 passes by luck: right on 2 of 3 seeds" in done.output


def test_each_grading_begins_anew_and_keeps_the_one_before(graded: Callable[..., Result]) -> None:
    assert graded(lambda *_: INVALID).exit_code == 1
    assert graded(only_after_kills).exit_code == 0
    folders = sorted(each.name for each in Path("results").iterdir())
    assert len(folders) == 2
    assert folders[0] == "glomers-4"
    assert folders[1].startswith("glomers-4-2")


def test_a_grading_that_is_stopped_is_no_pass(graded: Callable[..., Result]) -> None:
    def stopped(check: str, seed: int) -> str:
        if seed == 2:
            raise KeyboardInterrupt
        return VALID

    done = graded(stopped, "--junit", "a.xml")
    assert done.exit_code == 255
    assert "4 is unknown: not every run was made." in done.output
    assert "Stopped early" in done.output
    (suite,) = ElementTree.parse("a.xml").getroot()
    assert (suite.get("errors"), suite.get("skipped")) == ("2", "6")


@pytest.mark.parametrize("words", [["7", "--bin", str(NODE)], ["4", "--bin", "nothing"], ["4"]])
def test_what_cannot_be_graded_is_refused(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        command.main(words, standalone_mode=False)
