"""What a history's faults were, in words, and what was in force when an anomaly began."""

import io
from typing import Any

import pytest
from rich.console import Console

from bench.judgement import with_circumstances
from bench.verdict import render
from runs.faults import Injection, describe, injections
from runs.history import NEMESIS
from runs.keyword import Keyword
from tests.checker.history_language import timed
from workloads import pn_counter
from workloads.interface import Finding

SECOND = 1_000_000_000


HISTORY = timed(
    (0.0, "invoke", 0, "send", None),
    (0.5, "ok", 0, "send", None),
    (1.0, "info", NEMESIS, "start-partition", "majority"),
    (1.1, "info", NEMESIS, "start-partition", ["isolated", {"n0": ["n1"]}]),
    (1.5, "invoke", 1, "send", None),
    (2.0, "info", NEMESIS, "kill", "one"),
    (2.1, "info", NEMESIS, "kill", {"n2": "killed"}),
    (3.0, "invoke", 0, "poll", None),
    (3.2, "ok", 0, "poll", None),
    (4.0, "info", NEMESIS, "stop-partition", None),
    (4.1, "info", NEMESIS, "stop-partition", "network-healed"),
    (5.0, "ok", 1, "send", None),
    (6.0, "info", NEMESIS, "start", None),
    (6.1, "info", NEMESIS, "start", {"n2": "started"}),
    (8.0, "invoke", 0, "poll", None),
    (8.1, "ok", 0, "poll", None),
    (9.0, "info", NEMESIS, "stop-partition", None),
    (9.1, "info", NEMESIS, "stop-partition", "network-healed"),
)


def test_a_fault_lasts_from_the_first_of_its_beginning_to_the_last_of_its_end() -> None:
    assert injections(HISTORY) == [
        Injection("partition", SECOND, int(4.1 * SECOND), "the network was cut: majority"),
        Injection("kill", 2 * SECOND, int(6.1 * SECOND), "n2 was killed"),
    ]


def test_a_fault_that_begins_again_is_another() -> None:
    again = [*HISTORY, *timed((10, "info", NEMESIS, "start-partition", "one"))]
    assert [each.start_ns for each in injections(again)] == [SECOND, 2 * SECOND, 10 * SECOND]


def told(*indices: int) -> str:
    (finding,) = with_circumstances(
        [Finding("lost-write", True, 1, "Gone.", [HISTORY[index] for index in indices])], HISTORY
    )
    return finding.circumstances


def test_what_was_in_force_when_it_began() -> None:
    cut, killed = "the network was cut: majority", "n2 was killed"
    assert told(8, 15) == f"It began 3.200 s into the run, while {cut} and {killed}."


def test_an_operation_counts_from_its_invocation_to_its_completion() -> None:
    cut, killed = "the network was cut: majority", "n2 was killed"
    assert told(11) == f"It began 5.000 s into the run, while {cut} and {killed}."
    assert told(4) == f"It began 1.500 s into the run, while {cut} and {killed}."


def test_before_and_after_all_faults() -> None:
    assert told(1) == "It began 0.500 s into the run, before any fault."
    ago = "1.900 s after the latest fault had ended (n2 was killed)"
    assert told(15) == f"It began 8.100 s into the run, {ago}."


def test_what_was_injected_before_the_last_operation_of_the_witness() -> None:
    assert told(1, 15) == (
        "It began 0.500 s into the run, before any fault. Then, until 8.100 s: the network was cut:"
        " majority; n2 was killed."
    )


def test_where_something_is_missing_faults_are_told_until_the_end_of_the_run() -> None:
    gone = Finding("unseen", True, 1, "Gone.", [HISTORY[1]], at_end=True)
    (told_of,) = with_circumstances([gone], HISTORY)
    assert told_of.circumstances == (
        "It began 0.500 s into the run, before any fault. Then, until the end of the run: the network was"
        " cut: majority; n2 was killed."
    )


def test_adds_were_lost_when_they_were_made_and_not_when_that_was_read() -> None:
    history = timed(
        (0.5, "invoke", 0, "add", 3),
        (0.6, "ok", 0, "add", 3),
        (1.0, "info", NEMESIS, "start-partition", "one"),
        (1.1, "info", NEMESIS, "start-partition", ["isolated", {"n0": ["n1"]}]),
        (2.0, "invoke", 0, "add", 4),
        (2.1, "ok", 0, "add", 4),
        (3.0, "info", NEMESIS, "stop-partition", None),
        (3.1, "info", NEMESIS, "stop-partition", "network-healed"),
        (13.0, "invoke", 0, "read", None),
        (13.1, "ok", 0, "read", 3),
    )
    history[-1].extra["final?"] = True
    judge = pn_counter.judge()
    told = with_circumstances(judge.findings(judge.check(history, {}), history), history)
    assert [each.circumstances for each in told] == [
        "It began between 0.500 s and 2.100 s into the run, while the network was cut: one."
    ]


def test_of_many_faults_the_first_are_told() -> None:
    deeds: list[tuple[float, str, str, str, Any]] = []
    for number in range(9):
        deeds += [(number, "info", NEMESIS, "kill", {f"n{number}": "killed"})] * 2
        deeds += [(number + 0.5, "info", NEMESIS, "start", {})] * 2
    history = timed(*deeds, (20, "invoke", 0, "poll", None), (21, "ok", 0, "poll", None))
    history = [*timed((0, "ok", 1, "send", None)), *history]
    finding = Finding("unseen", True, 1, "Gone.", [history[0], history[-1]])
    (told_of,) = with_circumstances([finding], history)
    assert told_of.circumstances.endswith("n6 was killed; 2 more faults.")


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert told() == ""
    finding = Finding("lost-write", True, 1, "Gone.", HISTORY[:2])
    assert with_circumstances([finding], HISTORY[:2]) == [finding]


def test_it_is_printed_under_the_sentence() -> None:
    finding = Finding("lost-write", True, 1, "Gone.", HISTORY[:2], "It began.")
    printed = io.StringIO()
    console = Console(file=printed, width=100)
    render([finding], console)
    assert "\n  Gone." in printed.getvalue()
    assert "\n  It began." in printed.getvalue()


NODES = {"nodes": ["n0", "n1", "n2"]}


@pytest.mark.parametrize(
    ("fault", "intent", "effect", "text"),
    [
        ("partition", Keyword("one"), [Keyword("isolated"), {}], "the network was cut: one"),
        ("kill", "all", {"n0": "killed", "n1": "killed"}, "n0 and n1 were killed"),
        ("kill", "all", dict.fromkeys(map(str, range(9))), "9 nodes were killed"),
        ("kill", "one", "n1", "n1 was killed"),
        ("pause", "one", {}, "nobody was paused"),
        ("loss", None, NODES | {"share": 0.2}, "20% of the messages of n0, n1 and n2 were lost"),
        ("duplicate", None, {"nodes": ["n1"], "share": 1}, "100% of the messages of n1 came twice"),
        ("slow", None, NODES | {"factor": 3}, "messages of n0, n1 and n2 took 3 times as long"),
        (
            "store",
            None,
            {"nodes": ["n1"], "mode": "lost", "share": 0.3},
            "lin-kv executed and did not answer 30% of the requests of n1",
        ),
        ("fence", "n0", [{"epoch": 1}, "n0"], "the log was fenced"),
        ("fence", "n0", ["unknown", "n0"], "the log may have been fenced"),
        ("fence", "n0", ["not-supported", "n0"], "fencing failed: not-supported"),
        # What other tools may write.
        ("clock", None, {"n1": 3}, 'clock: {"n1" 3}'),
        ("partition", None, None, "partition: nil"),
        ("loss", None, "much", 'loss: "much"'),
        ("kill", 1, 7, "kill: 7"),
        ("fence", None, [], "fence: []"),
        ("store", None, {"mode": "x", "share": "y", "nodes": []}, "store: "),
    ],
)
def test_faults_in_words(fault: str, intent: Any, effect: Any, text: str) -> None:
    assert describe(fault, intent, effect).startswith(text)
