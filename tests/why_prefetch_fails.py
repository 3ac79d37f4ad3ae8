"""The story of docs/learn/why-prefetch-fails.md, from a real run: `python -m tests.why_prefetch_fails`.

A run on the virtual clock is the same every time, so what the document shows is what anybody gets.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from runs.history import Op
from runs.plots.lamport import Bold, lamport_svg
from tests.toy_log import VirtualRun, run_of
from workloads.kafka.shrink import smallest

DOCUMENT = Path(__file__).parents[1] / "docs" / "learn" / "why-prefetch-fails.md"
PICTURE = DOCUMENT.parents[1] / "images" / "why-prefetch-fails.svg"
Event = dict[str, Any]


def first_caught(anomaly: str) -> VirtualRun:
    """The run of `prefetch` with the lowest seed in which the checker finds `anomaly`."""
    for seed in count(1):
        run = run_of("prefetch", seed=str(seed), key_count=1, rate=300, time_limit_s=2)
        if anomaly in run.check()["bad-error-types"]:
            return run
    raise AssertionError("count never ends")


def told(history: list[Op]) -> list[str]:
    """A line for each completed operation: who, what, `message@offset`."""
    return [f"{op.process} {op.f} {_told(op.value)}" for op in history if op.type == "ok"]


def _told(value: Any) -> str:
    match value:
        case [["send", _, [offset, message]]]:
            return f"{message}@{offset}"
        case [["poll", polled]]:
            (pairs,) = polled.values()
            return ",".join(f"{message}@{offset}" for offset, message in pairs)
    raise AssertionError(value)


def picture(run: VirtualRun, history: list[Op]) -> str:
    """The messages behind a shrunk history, as a Lamport diagram."""
    events = list(_Story(history).events(map(orjson.loads, run.journal_file.content.splitlines())))
    title = "prefetch: a message appears behind a reader (one key of a run)"
    behind = [op.value[0][2][1] for op in history if op.f == "send" and op.type == "ok"][-1]
    ids = [e["message"]["id"] for e in events if e["message"]["body"].get("msg") == behind]
    return lamport_svg(events, title, Bold("the message that appears behind", {ids[0]: None}))


class _Story:
    """Chooses the messages of a run that made a shrunk history, and cuts them to its key."""

    def __init__(self, history: list[Op]) -> None:
        sends = [op.value[0] for op in history if op.f == "send" and op.type == "invoke"]
        self._key = sends[0][1]
        self._sent = {message for _, _, message in sends}
        polls = [op for op in history if op.f == "poll"]
        self._polls = list(zip(polls[::2], polls[1::2], strict=True))
        self._asked: set[tuple[str, int]] = set()  # who waits for an answer: name, msg_id

    def events(self, journal: Iterator[Event]) -> Iterator[Event]:
        """The events of the story, their polls and answers without other keys and messages."""
        for event in journal:
            message = event["message"]
            if self._belongs(event["time"], message):
                message["body"] = self._cut(message["body"])
                yield event

    def _belongs(self, time_ns: int, message: dict[str, Any]) -> bool:
        body = message["body"]
        if (message["dest"], body.get("in_reply_to")) in self._asked:
            return True
        if not self._is_asked_for(time_ns, message, body):
            return False
        if "msg_id" in body:
            self._asked.add((message["src"], body["msg_id"]))
        return True

    def _is_asked_for(self, time_ns: int, message: dict[str, Any], body: dict[str, Any]) -> bool:
        match body:
            case {"type": "send", "key": self._key, "msg": msg}:
                return msg in self._sent
            case {"type": "share", "msgs": msgs}:
                return any(msg in self._sent for _, msg in msgs.get(self._key, []))
            case {"type": "poll"}:
                return any(
                    invoked.time <= time_ns <= done.time
                    and message["dest"] == f"n{int(invoked.process) % 2}"
                    for invoked, done in self._polls
                )
            case {"type": "read" | "cas", "key": register}:
                return bool(register == f"reserved/{self._key}")
        return False

    def _cut(self, body: dict[str, Any]) -> dict[str, Any]:
        if "offsets" in body:
            return {**body, "offsets": {self._key: body["offsets"].get(self._key)}}
        if "msgs" in body:
            pairs = [pair for pair in body["msgs"].get(self._key, []) if pair[1] in self._sent]
            return {**body, "msgs": {self._key: pairs}}
        return body


def main() -> None:
    """Draw the picture of the document."""
    run = first_caught("poll-skip")
    PICTURE.write_text(picture(run, smallest(run.history, ["poll-skip"])), encoding="utf-8")


if __name__ == "__main__":
    main()
