"""Why a run went as it did: faults in words and in force at an anomaly; why an operation never succeeded."""

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.pages.facts import read_facts
from bench.verdict.circumstances import with_circumstances
from bench.verdict.printing import render
from bench.verdict.reasons import reasons
from bench.verdict.trail import facts
from runs.faults import Injection, describe, injections
from runs.files import RESULTS_JSON
from runs.history import NEMESIS, Keyword, Op, OpType, keywords
from runs.store import Folder
from runs.traffic import Event
from tests.checker.history_language import timed
from tests.toy_log import (
    NEVER_ANSWERS,
    MemoryLog,
    VirtualRun,
    answering,
    refusing,
    silent,
    verdict_of,
)
from workloads import pn_counter
from workloads.interface import Body, Finding, Placement

SECOND = 1_000_000_000
CUT, KILLED = "the network was cut: majority (n0 did not hear n1)", "n2 was killed"


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
        Injection("partition", SECOND, int(4.1 * SECOND), CUT),
        Injection("kill", 2 * SECOND, int(6.1 * SECOND), "n2 was killed"),
    ]
    again = [*HISTORY, *timed((10, "info", NEMESIS, "start-partition", "one"))]
    assert [each.start_ns for each in injections(again)] == [SECOND, 2 * SECOND, 10 * SECOND]


@pytest.mark.parametrize(
    ("indices", "at_end", "said"),
    [
        # An operation counts from its invocation to its completion.
        ((8, 15), False, f"It began 3.200 s into the run, while {CUT} and {KILLED}."),
        ((11,), False, f"It began 5.000 s into the run, while {CUT} and {KILLED}."),
        ((4,), False, f"It began 1.500 s into the run, while {CUT} and {KILLED}."),
        ((1,), False, "It began 0.500 s into the run, before any fault."),
        (
            (15,),
            False,
            f"It began 8.100 s into the run, 1.900 s after the latest fault had ended, in which {KILLED}.",
        ),
        # What was injected before the last operation of the witness may have to do with it,
        (
            (1, 15),
            False,
            "It began 0.500 s into the run, before any fault."
            f" Then, until 8.100 s: {CUT}; {KILLED}.",
        ),
        # and where something is missing, until the end of the run.
        (
            (1,),
            True,
            "It began 0.500 s into the run, before any fault."
            f" Then, until the end of the run: {CUT}; {KILLED}.",
        ),
        ((), False, ""),
    ],
)
def test_the_faults_at_the_time_are_told(indices: tuple[int, ...], at_end: bool, said: str) -> None:
    witness = [HISTORY[index] for index in indices]
    finding = Finding("lost-write", True, 1, "Gone.", witness, at_end=at_end)
    assert [each.circumstances for each in with_circumstances([finding], HISTORY)] == [said]


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
    judge = pn_counter.JUDGE
    told = with_circumstances(judge.findings(judge.check(history, {}), history), history)
    assert [each.circumstances for each in told] == [
        f"It began between 0.500 s and 2.100 s into the run, while {OF}one (n0 did not hear n1)."
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
    finding = Finding("lost-write", True, 1, "Gone.", HISTORY[:2])
    assert with_circumstances([finding], HISTORY[:2]) == [finding]


def test_it_is_printed_under_the_sentence() -> None:
    finding = Finding("lost-write", True, 1, "Gone.", HISTORY[:2], "It began.")
    printed = io.StringIO()
    render([finding], Console(file=printed, width=100))
    assert "\n  Gone." in printed.getvalue()
    assert "\n  It began." in printed.getvalue()


NODES = {"nodes": ["n0", "n1", "n2"]}
OF = "the network was cut: "


def cut(**deaf: str) -> list[Any]:
    """What the nemesis did: for each node, those that it does not hear."""
    return [Keyword("isolated"), {node: {*others.split()} for node, others in deaf.items()}]


@pytest.mark.parametrize(
    ("fault", "intent", "effect", "text"),
    [
        ("partition", Keyword("one"), [Keyword("isolated"), {}], "the network was cut: one"),
        (
            "partition",
            "one",
            cut(n0="n1 n10 n2", n1="n0", n2="n0", n10="n0"),
            f"{OF}one (n0 from n1, n2 and n10)",
        ),
        (
            "partition",
            "majority",
            cut(a="c d", b="c d", c="a b", d="a b"),
            f"{OF}majority (a and b from c and d)",
        ),
        ("partition", "one-way", cut(n2="n0 n1"), f"{OF}one-way (n2 did not hear n0 and n1)"),
        (
            "partition",
            "majorities-ring",
            cut(n0="n1", n1="n2", n2="n0"),
            f"{OF}majorities-ring (n0 did not hear n1; n1 did not hear n2; n2 did not hear n0)",
        ),
        (
            "partition",
            "one",
            cut(n0=" ".join("abcdefgh"), **dict.fromkeys("abcdefgh", "n0")),
            f"{OF}one (n0 from 8 nodes)",
        ),
        ("partition", "ring", cut(**{node: node for node in "abcdefgh"}), f"{OF}ring$"),
        ("partition", "one", cut(n0="", n1=""), f"{OF}one (no node)$"),
        ("partition", "one", "one", f"{OF}one$"),  # what was meant, before it was done
        ("partition", "one", ["isolated", {"n0": 7}], f"{OF}one$"),
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
    assert f"{describe(fault, intent, effect)}$".startswith(text)


# ---------------------------------------------------------------- why nothing succeeded


PLACE = Placement(("n0", "n1"), concurrency=2)


def failed(*errors: Any, f: str = "cas", kind: OpType = "fail") -> list[Op]:
    ops: list[Op] = []
    for number, error in enumerate(errors):
        ops.append(Op(2 * number, number, "invoke", number, f))
        ops.append(Op(2 * number + 1, number, kind, number, f, extra={"error": error}))
    return ops


def no_journal() -> Iterable[Event]:
    raise AssertionError("the journal is not needed")


NO_CAS = [Keyword("not-supported"), "this node does not know messages of type cas"]


@pytest.mark.parametrize(
    ("errors", "kind", "said"),
    [
        (
            [NO_CAS, [Keyword("abort"), "busy"], NO_CAS],
            "fail",
            "2 of 3 ended with not-supported: this node does not know messages of type cas.",
        ),
        ([None], "info", "1 of 1 ended with info, without an error."),
    ],
)
def test_the_commonest_error_is_told_with_its_text(
    errors: list[Any], kind: OpType, said: str
) -> None:
    assert reasons(failed(*errors, kind=kind), ["cas"], PLACE, no_journal) == {"cas": said}


def answers(**fields: Any) -> type[MemoryLog]:
    """A node whose answers to `send` have other fields; a field that is None is left out."""

    class Node(answering(send=lambda _, right: (right() or {}) | fields)):  # type: ignore[misc]
        def take(self) -> bytes:
            return re.sub(rb'"\w+":null,?', b"", super().take())

    return Node


FAILS_HALF = answering(
    send=lambda body, right: refusing(11, "not now")(body, right) if body["msg"] % 2 else right()
)


# Keeps every message, and answers no send.
NEVER_ACKNOWLEDGES = answering(send=lambda _, right: right() and None, poll=silent)


LONG: dict[str, Any] = {"nodes": ("n0",), "concurrency": 2, "time_limit_s": 12}
SILENT = r"had no answer in time\. n0 "
# A node and options of its run; what the verdict says, and what it does not.
TOLD: list[tuple[type[MemoryLog], dict[str, Any], str, str]] = [
    (
        answering(send=refusing(10, "I do not know send")),
        LONG,
        "^✘ INVALID: send never succeeded: .* ended with not-supported: I do not know send.$",
        "shows anomalies|crash never|never succeeded: crash",
    ),
    (
        NEVER_ANSWERS,
        LONG,
        SILENT
        + r"never answered a client: n0 sent init_ok to c0 last, and has sent nothing since\.",
        "INVALID: the history|flush stdout",
    ),
    (
        answering(send=silent),
        LONG,
        SILENT + r"answered other requests, but none of these\.",
        "flush stdout",
    ),
    (
        answers(in_reply_to=None),
        LONG,
        SILENT + r".*of the journal\) without in_reply_to, so no client could tell",
        "flush stdout",
    ),
    (
        answers(in_reply_to="7"),
        LONG,
        SILENT + r'.*with in_reply_to "7", which no request has',
        "flush stdout",
    ),
    (
        FAILS_HALF,
        {"availability": "total"},
        "no anomaly was found, but .* of the operations succeeded, which is less than asked for",
        "shows anomalies",
    ),
    (
        NEVER_ACKNOWLEDGES,  # nothing happened in its history
        {"rate": 1.0},
        "(?s)empty-transaction-graph.*^✘ INVALID: poll and send never succeeded: of send, .*"
        "n0 never answered a client",
        "shows anomalies",
    ),
]


@pytest.mark.parametrize(("node_class", "options", "said", "not_said"), TOLD)
def test_the_verdict_says_why_nothing_succeeded(
    node_class: type[MemoryLog], options: dict[str, Any], said: str, not_said: str
) -> None:
    text = verdict_of(VirtualRun(node_class=node_class, **options))
    assert re.search(said, text, re.MULTILINE)
    assert not re.search(not_said, text)


# ---------------------------------------------------------------- what messages show


def asked(node: str, kind: str, fields: Body, **answer: Any) -> list[Any]:
    """A request of a node to `seq-kv` about the key `sum`, and the answer."""
    return [
        (node, "seq-kv", {"type": kind, "key": "sum", "msg_id": 7, **fields}),
        ("seq-kv", node, {"type": f"{kind}_ok", "in_reply_to": 7, **answer}),
    ]


def of_client(node: str, kind: str, calls: list[Any], **answer: Any) -> list[Any]:
    """A request of a client, what its node asks meanwhile, and the answer."""
    request = (f"c{node[1:]}", node, {"type": kind, "msg_id": 1, "delta": 1})
    return [request, *calls, (node, request[0], {"type": f"{kind}_ok", "in_reply_to": 1, **answer})]


READS_0 = of_client("n0", "read", asked("n0", "read", {}, value=0), value=0)
WRITES = {value: asked("n1", "write", {"value": value}) for value in (0, 1)}
ADDS_1 = of_client("n1", "add", WRITES[0] + WRITES[1])
OLDER = 'seq-kv gave n0 0 for "sum", and that had been 1 since 0.004 s.'


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ([], OLDER),
        # A service takes what changes nothing on an older state, so that says nothing of the newest,
        (asked("n1", "cas", {"from": 0, "to": 0}), OLDER),
        (WRITES[1], OLDER),
        # and a write of an older value may be a change.
        (WRITES[0], ""),
    ],
)
def test_what_the_messages_show_of_a_wrong_sum(between: list[Any], said: str) -> None:
    events = (
        {"type": "send", "time": at * 1e6, "message": {"src": src, "dest": dest, "body": body}}
        for at, (src, dest, body) in enumerate([*ADDS_1, *between, *READS_0])
    )
    (_, read) = timed((0, "invoke", 0, "read", None), (1, "ok", 0, "read", 0))
    finding = Finding("wrong-sum", True, 1, "Wrong.", [read])
    told = facts(events, [finding], PLACE, 0, is_valid=False, is_calm=True)
    assert said in " ".join(told)
    assert said or not told


def test_pages_give_the_reason(tmp_path: Path) -> None:
    stats = keywords(valid=False, count=3, reasons={"cas": "3 of 3 ended with abort."})
    stats[Keyword("by-f")] = {"cas": {"ok-count": 0}, "crash": {"ok-count": 0, "valid?": False}}
    (tmp_path / RESULTS_JSON).write_text(json.dumps({"stats": stats, "valid?": False}))
    (check,) = read_facts(Folder(tmp_path, "run"), now_s=0).checks
    assert check.sentence.startswith("cas never succeeded: 3 of 3 ended with abort.")
    assert "crash" not in check.sentence
