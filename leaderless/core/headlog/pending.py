"""What is to be appended and is in no batch yet: sends, appends of programs, committed offsets."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.conditions import Along, refused_by
from leaderless.core.headlog.records import Head
from leaderless.core.headlog.view import View
from leaderless.core.limits import Limits
from leaderless.core.messages import (
    Append,
    AppendOk,
    Batch,
    Failure,
    Offsets,
    Reason,
    Reply,
    Send,
    SendOk,
)

SEND_BYTES = 400  # about what a send takes in memory beside the bytes of its message
IS_FENCED = Failure(Reason.FENCED, "the log is fenced")
OFFSET_BYTES = 16  # about what a committed offset takes, beside its key


@dataclass(slots=True, eq=False)
class Waiting:
    """Something that is to be appended, since when, and until when somebody waits for it."""

    event: Send | Append
    since: float
    until: float


class Pending:
    """What waits at one node. `waiting`: the oldest first; it is not to be changed from outside.

    `commits`: committed offsets that are not in the log yet.
    """

    def __init__(self, limits: Limits) -> None:
        self._answer_s = limits.answer_s
        self._bytes_max = limits.waiting_bytes
        self.waiting: list[Waiting] = []
        self._bytes = 0
        self.commits: Offsets = {}

    def add(self, event: Send | Append, now: float) -> Failure | None:
        """Take what came; the failure if too much waits already."""
        if self._bytes > self._bytes_max:
            text = f"{self._bytes_max} bytes of messages wait for the store already"
            return Failure(Reason.BUSY, text)
        self.waiting.append(Waiting(event, now, now + self._answer_s))
        self._bytes += event.size + SEND_BYTES
        return None

    @property
    def since(self) -> float:
        """Since when the oldest waits; -inf: nothing does."""
        return self.waiting[0].since if self.waiting else -inf

    def put_back(self, waiting: list[Waiting]) -> None:
        """Take again what was in a batch that never gets into the log."""
        self.waiting[:0] = waiting
        self._bytes += sum(each.event.size + SEND_BYTES for each in waiting)

    def take(
        self, limits: Limits, head: Head, view: View, now: float
    ) -> tuple[list[Waiting], list[Reply]]:
        """What waits longest and has a client, up to `batch_bytes`, or a single one.

        Then the answers to what was in front of it and goes into no batch behind this head. What would break a
        condition of the rest waits on.
        """
        taken: list[Waiting] = []
        left: list[Waiting] = []
        refused: list[Reply] = []
        along: Along | None = None
        size = passed = 0
        most = largest(limits)
        for each in self.waiting:
            event = each.event
            asks = type(event) is Append and bool(event.expected or event.commits)
            may_not = event.size > most or event.epoch is not None or asks or view.tokens
            if may_not and (failure := refusal_of(event, limits, head, view)):
                refused.append(Reply(event.request, failure))
            elif each.until > now:  # or its client got an error already
                if taken and size + event.size > limits.batch_bytes:
                    break
                if asks and along is None:
                    along = Along(one.event for one in taken)
                if along and not along.takes(event):
                    left.append(each)
                else:
                    size += event.size
                    taken.append(each)
            passed += 1
            self._bytes -= event.size + SEND_BYTES
        self.waiting = self.waiting[passed:]
        if left:
            self.put_back(left)
        return taken, refused

    def take_all(self) -> list[Waiting]:
        """All that waits, but for committed offsets."""
        taken, self.waiting, self._bytes = self.waiting, [], 0
        return taken

    def commit(self, offsets: Offsets, logged: Offsets) -> None:
        """Take committed offsets, as far as the log has none that is as high."""
        for key, offset in offsets.items():
            if offset > max(self.commits.get(key, -1), logged.get(key, -1)):
                self.commits[key] = offset

    def committed(self, offsets: Offsets) -> None:
        """Let go of committed offsets that are in the log now."""
        for key, offset in offsets.items():
            if self.commits.get(key) == offset:
                del self.commits[key]

    def batch(
        self, name: tuple[str, int], epoch: int, waiting: Sequence[Waiting], bytes_max: int
    ) -> Batch:
        """The batch of what was taken, with committed offsets beside it, of up to `bytes_max`."""
        appends: dict[str, list[Any]] = {}
        expected: Offsets = {}
        commits: Offsets = {}
        size = 0
        for each in waiting:
            event = each.event
            if event.epoch not in (None, epoch):
                raise InvariantBroken(f"DataBeforeReference: {event} in a batch of epoch {epoch}")
            size += event.size
            if isinstance(event, Send):
                appends.setdefault(event.key, []).append(event.msg)
            else:
                for key, msgs in event.appends.items():
                    appends.setdefault(key, []).extend(msgs)
                expected |= event.expected
                commits |= event.commits
        commits_size = 0
        for key, offset in self.commits.items():
            commits_size += len(key.encode()) + OFFSET_BYTES
            if commits and commits_size > bytes_max:
                break
            commits[key] = offset
        return Batch(*name, epoch, appends, commits, size + commits_size, expected)


def largest(limits: Limits) -> int:
    """The most bytes that something may have that is appended."""
    return max(limits.message_bytes, limits.batch_bytes)


def refusal_of(event: Send | Append, limits: Limits, head: Head, view: View) -> Failure | None:
    """Why something goes into no batch behind this head; None if it may go into one."""
    if event.size > (most := largest(limits)):
        text = f"a message of {event.size} bytes; the registers of this log take {most}"
        return Failure(Reason.UNFIT, text)
    if event.epoch not in (None, head.epoch):
        text = f"the log has epoch {head.epoch}, and this belongs into epoch {event.epoch} alone"
        return Failure(Reason.OTHER_EPOCH, text)
    return refused_by(view, event)


def refusals_of(waiting: Sequence[Waiting], failure: Failure) -> list[Reply]:
    """The answers to what is in no batch, or in one that this node does no more for."""
    return [Reply(each.event.request, failure) for each in waiting]


def answers_of(waiting: Sequence[Waiting], first: Offsets) -> list[Reply]:
    """The answers to what is in the log, in a batch whose messages begin at the offsets `first`."""
    offsets = dict(first)
    replies = []
    for each in waiting:
        event = each.event
        if isinstance(event, Send):
            replies.append(Reply(event.request, SendOk(offsets[event.key])))
            offsets[event.key] += 1
        else:
            placed = AppendOk({key: offsets[key] for key in event.appends})
            replies.append(Reply(event.request, placed))
            for key, msgs in event.appends.items():
                offsets[key] += len(msgs)
    return replies
