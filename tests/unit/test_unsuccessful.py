"""Why an operation never succeeded: told by the history's errors, or by the journal's messages."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.pages.facts import read_facts
from bench.why import reasons
from runs.files import RESULTS_JSON
from runs.history import Op, OpType
from runs.keyword import Keyword, keywords
from runs.store import Folder
from runs.traffic import Event
from tests.toy_log import MemoryLog, VirtualRun, judged, verdict_of
from workloads.interface import Body, Placement

PLACE = Placement(("n0", "n1"), concurrency=2)


def failed(*errors: Any, f: str = "cas", kind: OpType = "fail") -> list[Op]:
    ops: list[Op] = []
    for number, error in enumerate(errors):
        ops.append(Op(2 * number, number, "invoke", number, f))
        ops.append(Op(2 * number + 1, number, kind, number, f, extra={"error": error}))
    return ops


def no_journal() -> Iterable[Event]:
    raise AssertionError("the journal is not needed")


def test_the_commonest_error_is_told_with_its_text() -> None:
    unknown = [Keyword("not-supported"), "this node does not know messages of type cas"]
    other = [Keyword("abort"), "busy"]
    told = reasons(failed(unknown, other, unknown), ["cas"], PLACE, no_journal)
    assert told == {
        "cas": "2 of 3 ended with not-supported: this node does not know messages of type cas."
    }


def test_an_error_without_words() -> None:
    told = reasons(failed(None, kind="info"), ["cas"], PLACE, no_journal)
    assert told == {"cas": "1 of 1 ended with info, without an error."}


class Run(VirtualRun):
    """A run on one node, which answers as the test says."""

    def __init__(self, node_class: type[MemoryLog]) -> None:
        super().__init__(node_class=node_class, nodes=("n0",), concurrency=2, time_limit_s=12)

    @property
    def reason(self) -> str:
        reason: str = judged(self).results["stats"]["reasons"]["send"]
        return reason


class Refuses(MemoryLog):
    """Knows no `send`."""

    def answer(self, body: Body) -> Body | None:
        if body["type"] == "send":
            return {"type": "error", "code": 10, "text": "I do not know send"}
        return super().answer(body)


def answers(**fields: Any) -> type[MemoryLog]:
    """A node whose answers to `send` have other fields; a field that is None is left out."""

    class Node(MemoryLog):
        def answer(self, body: Body) -> Body | None:
            reply = super().answer(body)
            return {**reply, **fields} if reply and body["type"] == "send" else reply

        def take(self) -> bytes:
            lines = [orjson.loads(line) for line in super().take().splitlines()]
            for line in lines:
                line["body"] = {k: v for k, v in line["body"].items() if v is not None}
            return b"".join(orjson.dumps(line) + b"\n" for line in lines)

    return Node


class NeverAnswers(MemoryLog):
    def answer(self, body: Body) -> Body | None:
        return super().answer(body) if body["type"] == "init" else None


class AnswersPolls(MemoryLog):
    def answer(self, body: Body) -> Body | None:
        return None if body["type"] == "send" else super().answer(body)


def test_a_refusal_is_told_and_no_anomaly_is_claimed() -> None:
    run = Run(Refuses)
    assert run.reason.endswith("ended with not-supported: I do not know send.")
    (said,) = [line for line in verdict_of(run).splitlines() if "INVALID" in line]
    assert said.startswith("✘ INVALID: send never succeeded: ")
    assert said.endswith(" ended with not-supported: I do not know send.")
    assert "shows anomalies" not in verdict_of(run)
    assert "crash never" not in verdict_of(run)
    assert "never succeeded: crash" not in verdict_of(run)


@pytest.mark.parametrize(
    ("node_class", "part"),
    [
        (NeverAnswers, "n0 never answered a client."),
        (AnswersPolls, "n0 answered other requests, but none of these."),
        (answers(in_reply_to=None), "of the journal) without in_reply_to, so no client could tell"),
        (answers(in_reply_to="7"), 'with in_reply_to "7", which no request has'),
    ],
)
def test_silence_is_told_from_the_journal(node_class: type[MemoryLog], part: str) -> None:
    run = Run(node_class)
    assert "had no answer in time." in run.reason
    assert part in run.reason
    assert part in verdict_of(run)
    assert ("flush stdout" in run.reason) == (node_class is NeverAnswers)


def test_availability_alone_is_no_anomaly() -> None:
    class FailsNow(MemoryLog):
        def answer(self, body: Body) -> Body | None:
            if body["type"] == "send" and body["msg"] % 2:
                return {"type": "error", "code": 11, "text": "not now"}
            return super().answer(body)

    run = VirtualRun(node_class=FailsNow, availability="total")
    told = verdict_of(run)
    assert "no anomaly was found, but" in told
    assert "of the operations succeeded, which is less than asked for" in told


def test_pages_give_the_reason(tmp_path: Path) -> None:
    stats = keywords(valid=False, count=3, reasons={"cas": "3 of 3 ended with abort."})
    stats[Keyword("by-f")] = {"cas": {"ok-count": 0}, "crash": {"ok-count": 0, "valid?": False}}
    (tmp_path / RESULTS_JSON).write_text(json.dumps({"stats": stats, "valid?": False}))
    (check,) = read_facts(Folder(tmp_path, "run"), now_s=0).checks
    assert check.numbers.startswith("cas never succeeded: 3 of 3 ended with abort.")
    assert "crash" not in check.numbers


class NeverAcknowledges(MemoryLog):
    """Keeps every message, and answers no send."""

    def answer(self, body: Body) -> Body | None:
        reply = super().answer(body)
        return None if body["type"] in ("send", "poll") else reply


def test_a_history_in_which_nothing_happened_shows_no_anomaly() -> None:
    told = " ".join(verdict_of(VirtualRun(node_class=NeverAcknowledges, rate=1.0)).split())
    assert "empty-transaction-graph" in told
    assert "✘ INVALID: poll and send never succeeded: of send, " in told
    assert told.count("n0 never answered a client") > 1
