"""What is to be appended and is in no batch yet: sends, appends of programs, committed offsets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from leaderless.core.headlog.records import Head, InvariantBroken
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

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self._bytes = 0
        self.commits: Offsets = {}

    def add(self, event: Send | Append, now: float, limits: Limits) -> Failure | None:
        """Take what came; the failure if too much waits already."""
        if self._bytes > limits.waiting_bytes:
            text = f"{limits.waiting_bytes} bytes of messages wait for the store already"
            return Failure(Reason.BUSY, text)
        self.waiting.append(Waiting(event, now, now + limits.answer_s))
        self._bytes += event.size + SEND_BYTES
        return None

    @property
    def since(self) -> float:
        """Since when the oldest waits; -inf: nothing does."""
        return self.waiting[0].since if self.waiting else -inf

    def put_back(self, waiting: list[Waiting]) -> None:
        """Take again what was in a batch that never gets into the log."""
        self.waiting[:0] = waiting
        self._bytes += _memory_of(waiting)

    def refuse(self, limits: Limits, head: Head) -> list[Reply]:
        """Let go of what goes into no batch behind this head, and answer it."""
        refused = [
            (each, failure)
            for each in self.waiting
            if (failure := refusal_of(each.event, limits, head))
        ]
        if not refused:
            return []
        gone = [each for each, _ in refused]
        self._keep([each for each in self.waiting if each not in gone])
        return [Reply(each.event.request, failure) for each, failure in refused]

    def take(self, limits: Limits, now: float) -> list[Waiting]:
        """What waits longest and has a client, up to `batch_bytes`, or a single one."""
        if self.waiting and self.waiting[0].until <= now:  # their clients got an error already
            self._keep([each for each in self.waiting if each.until > now])
        size = count = 0
        for each in self.waiting:
            if count and size + each.event.size > limits.batch_bytes:
                break
            size, count = size + each.event.size, count + 1
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        self._bytes -= size + SEND_BYTES * count
        return taken

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
        size = 0
        for event in (each.event for each in waiting):
            if event.epoch not in (None, epoch):
                raise InvariantBroken(f"DataBeforeReference: {event} in a batch of epoch {epoch}")
            size += event.size
            if isinstance(event, Send):
                appends.setdefault(event.key, []).append(event.msg)
            else:
                for key, msgs in event.appends.items():
                    appends.setdefault(key, []).extend(msgs)
        commits: Offsets = {}
        commits_size = 0
        for key, offset in self.commits.items():
            commits_size += len(key.encode()) + OFFSET_BYTES
            if commits and commits_size > bytes_max:
                break
            commits[key] = offset
        return Batch(*name, epoch, appends, commits, size + commits_size)

    def _keep(self, waiting: list[Waiting]) -> None:
        self.waiting, self._bytes = waiting, _memory_of(waiting)


def refusal_of(event: Send | Append, limits: Limits, head: Head) -> Failure | None:
    """Why something goes into no batch behind this head; None if it may go into one."""
    most = max(limits.message_bytes, limits.batch_bytes)
    if event.size > most:
        text = f"a message of {event.size} bytes; the registers of this log take {most}"
        return Failure(Reason.UNFIT, text)
    if event.epoch not in (None, head.epoch):
        text = f"the log has epoch {head.epoch}, and this belongs into epoch {event.epoch} alone"
        return Failure(Reason.OTHER_EPOCH, text)
    return None


def answers_of(waiting: Sequence[Waiting], first: Offsets) -> Iterator[Reply]:
    """The answers to what is in the log, in a batch whose messages begin at the offsets `first`."""
    offsets = dict(first)
    for event in (each.event for each in waiting):
        if isinstance(event, Send):
            yield Reply(event.request, SendOk(offsets[event.key]))
            offsets[event.key] += 1
        else:
            yield Reply(event.request, AppendOk({key: offsets[key] for key in event.appends}))
            for key, msgs in event.appends.items():
                offsets[key] += len(msgs)


def _memory_of(waiting: Iterable[Waiting]) -> int:
    return sum(each.event.size + SEND_BYTES for each in waiting)
