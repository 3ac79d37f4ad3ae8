"""Why an operation never succeeded: told by the history's errors, or by the journal's messages."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.judgement import reasons
from bench.pages.facts import read_facts
from runs.files import RESULTS_JSON
from runs.history import Op, OpType
from runs.keyword import Keyword, keywords
from runs.store import Folder
from runs.traffic import Event
from tests.toy_log import MemoryLog, VirtualRun, verdict_of
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


class FailsNow(MemoryLog):
    """Refuses half of all sends for the moment."""

    def answer(self, body: Body) -> Body | None:
        if body["type"] == "send" and body["msg"] % 2:
            return {"type": "error", "code": 11, "text": "not now"}
        return super().answer(body)


class NeverAcknowledges(MemoryLog):
    """Keeps every message, and answers no send."""

    def answer(self, body: Body) -> Body | None:
        reply = super().answer(body)
        return None if body["type"] in ("send", "poll") else reply


LONG: dict[str, Any] = {"nodes": ("n0",), "concurrency": 2, "time_limit_s": 12}
SILENT = r"had no answer in time\. n0 "
# A node and options of its run; what the verdict says, and what it does not.
TOLD: list[tuple[type[MemoryLog], dict[str, Any], str, str]] = [
    (
        Refuses,
        LONG,
        "^✘ INVALID: send never succeeded: .* ended with not-supported: I do not know send.$",
        "shows anomalies|crash never|never succeeded: crash",
    ),
    (
        NeverAnswers,
        LONG,
        SILENT + r"never answered a client\..*flush stdout",
        "INVALID: the history",
    ),
    (
        AnswersPolls,
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
        FailsNow,
        {"availability": "total"},
        "no anomaly was found, but .* of the operations succeeded, which is less than asked for",
        "shows anomalies",
    ),
    (
        NeverAcknowledges,  # nothing happened in its history
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


def test_pages_give_the_reason(tmp_path: Path) -> None:
    stats = keywords(valid=False, count=3, reasons={"cas": "3 of 3 ended with abort."})
    stats[Keyword("by-f")] = {"cas": {"ok-count": 0}, "crash": {"ok-count": 0, "valid?": False}}
    (tmp_path / RESULTS_JSON).write_text(json.dumps({"stats": stats, "valid?": False}))
    (check,) = read_facts(Folder(tmp_path, "run"), now_s=0).checks
    assert check.numbers.startswith("cas never succeeded: 3 of 3 ended with abort.")
    assert "crash" not in check.numbers
