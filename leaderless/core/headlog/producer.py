"""The producer: makes batches of all that waits, and answers when they are in the log.

It has a few *lanes*. Each is a writer of its own, with its own numbers, and has one batch at a time: the
next is made only when the one before is in the log or can never get there. So the highest number of a
writer in the log tells which of its batches are in it. A second lane starts while the first is under way
only when waiting for it would cost more than the messages.

A send may have an epoch (`Send.epoch`). Law `DataBeforeReference`: it goes into no batch of another epoch,
also when its first batch was rejected and its sends go into a new one.
"""

from collections.abc import Iterable
from typing import Any

from leaderless.core.coordination import StoreSilent
from leaderless.core.headlog import trace as steps
from leaderless.core.headlog.delivery import Delivery
from leaderless.core.headlog.pacer import Pacer
from leaderless.core.headlog.records import InvariantBroken
from leaderless.core.headlog.replica import Replica
from leaderless.core.messages import (
    OTHER_EPOCH,
    Batch,
    Failure,
    Offsets,
    Reply,
    Send,
    SendOk,
)
from leaderless.core.process import Process, Sleep, Spawn
from leaderless.core.strategy import Clock
from leaderless.core.value import value

SEND_BYTES = 400  # about what a send takes in memory beside the bytes of its message
OFFSET_BYTES = 16  # about what a committed offset takes, beside its key


def lanes_of(writer: str, lanes: int) -> list[str]:
    """The writers of a node's lanes."""
    return [f"{writer}/{lane}" for lane in range(lanes)]


@value
class _Waiting:
    """A send that is in no batch yet; at `until` its client gets an error and is gone."""

    send: Send
    until: float


class Producer:
    """Collects sends and committed offsets of one node, whose lanes are `writers`.

    `commits` are the committed offsets that are not in the log yet.
    """

    def __init__(
        self,
        clock: Clock,
        writers: list[str],
        replica: Replica,
        pacer: Pacer,
        delivery: Delivery,
    ) -> None:
        self._clock = clock
        self._replica = replica
        self._answer_s = replica.limits.answer_s
        self._pacer = pacer
        self._delivery = delivery
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self.commits: dict[str, int] = {}
        self._watching = False
        self._flush_planned = self._flush_due = False
        self._idle = writers[::-1]
        self._seqs = dict.fromkeys(self._idle, 0)

    @property
    def load(self) -> tuple[int, int]:
        """Sends that are in no batch yet, and batches under way."""
        return len(self._waiting), len(self._seqs) - len(self._idle)

    def send(self, event: Send) -> Process[None]:
        """Take a send; it is answered when its batch is in the log."""
        limits = self._replica.limits
        if self._waiting_bytes > limits.waiting_bytes:
            text = f"{limits.waiting_bytes} bytes of messages wait for the store already"
            yield Reply(event.request, Failure("temporarily-unavailable", text))
            return
        self._waiting.append(_Waiting(event, self._clock.now + self._answer_s))
        self._waiting_bytes += event.size + SEND_BYTES
        self._pacer.send_arrived()
        if self._needs_lane:
            yield Spawn(self._run(self._idle.pop()))
        elif not self._watching:
            self._watching = True
            yield Spawn(self._watch())

    def _watch(self) -> Process[None]:
        """Start a lane for what waits although none pays: a batch may be stuck, and must not hold it up."""
        while self._waiting and self._idle:
            yield Sleep(self._clock.now + self._pacer.lane_overdue_s)
            if self._waiting and self._idle:
                yield Spawn(self._run(self._idle.pop()))
        self._watching = False

    def commit_offsets(self, offsets: Offsets) -> Process[None]:
        """Take committed offsets; they ride in the next batch."""
        committed = self._replica.view.committed
        for key, offset in offsets.items():
            if offset > max(self.commits.get(key, -1), committed.get(key, -1)):
                self.commits[key] = offset
        yield from self._plan_flush()

    def _plan_flush(self) -> Process[None]:
        if self.commits and not self._flush_planned:
            self._flush_planned = True
            yield Spawn(self._flush())

    def _flush(self) -> Process[None]:
        yield Sleep(self._clock.now + self._replica.limits.commits_idle_s)
        self._flush_planned = False
        self._flush_due = bool(self.commits)
        if self._needs_lane:
            yield Spawn(self._run(self._idle.pop()))

    @property
    def _needs_lane(self) -> bool:
        """Whether to start one: the first at once, a further one if it pays."""
        if not self._idle or not self._has_work:
            return False
        none_is_busy = len(self._idle) == len(self._seqs)
        return none_is_busy or self._pacer.needs_lane(len(self._waiting))

    @property
    def _has_work(self) -> bool:
        return bool(self._waiting) or self._flush_due

    def _run(self, lane: str) -> Process[None]:
        try:
            while self._has_work:
                yield from self._refresh()
                if self._replica.head.fenced:
                    yield from self._give_up("temporarily-unavailable", "the log is fenced")
                    break
                yield from self._linger()
                yield from self._produce(lane)
        except StoreSilent as silent:
            yield from self._give_up("timeout", str(silent))
        finally:
            self._idle.append(lane)

    def _refresh(self) -> Process[None]:
        """Before the first batch, to learn the epoch; and while fenced, to learn of its end."""
        if not self._replica.loaded or self._replica.head.fenced:
            yield from self._replica.refresh()

    def _linger(self) -> Process[None]:
        """Wait for company: at least for what arrived together with the first."""
        waiting, linger_s = len(self._waiting), self._pacer.batch_linger_s()
        yield Sleep(self._clock.now + linger_s)
        if linger_s:
            self._pacer.sends_came(len(self._waiting) - waiting)

    def _produce(self, lane: str) -> Process[None]:
        yield from self._refuse_unfit()
        waiting, size = self._take_waiting()
        sends = [each.send for each in waiting]
        if not sends and not self._flush_due:
            return  # another lane took it all meanwhile
        self._flush_due = False
        batch = self._batch(lane, sends, size)
        self._replica.trace("Send", steps.sent, batch)
        until = max((each.until for each in waiting), default=self._clock.now + self._answer_s)
        if (yield from self._delivery.deliver(batch, until)):
            yield from self._acknowledge(batch, sends)
        elif not self._delivery.is_dead(batch):
            self._replica.trace("Abandon", steps.named, batch)
            yield from self._plan_flush()  # its clients are gone; its committed offsets ride on
        else:  # no copy of the batch can get into the log any more: its sends go into a new one
            self._replica.trace("Reject", steps.named, batch)
            self._waiting[:0] = waiting
            self._waiting_bytes += _memory_of(sends)
            yield from self._plan_flush()

    def _refuse_unfit(self) -> Process[None]:
        """Refuse what waits and goes into no batch of this log; nothing comes between this and the batch."""
        limits, epoch = self._replica.limits, self._replica.head.epoch
        most = max(limits.message_bytes, limits.batch_bytes)
        sends = [each.send for each in self._waiting]
        refused = [s for s in sends if s.size > most or s.epoch not in (None, epoch)]
        if not refused:
            return
        self._waiting = [each for each in self._waiting if each.send not in refused]
        self._waiting_bytes -= _memory_of(refused)
        for send in refused:
            if send.size > most:
                text = f"a message of {send.size} bytes; the registers of this log take {most}"
                yield Reply(send.request, Failure("malformed-request", text))
            else:
                text = f"the log has epoch {epoch}, and this belongs into epoch {send.epoch} alone"
                yield Reply(send.request, Failure(OTHER_EPOCH, text))

    def _take_waiting(self) -> tuple[list[_Waiting], int]:
        """What waits longest and has a client, up to `batch_bytes`, and the bytes of its messages."""
        self._drop_those_gone()
        size = count = 0
        for each in self._waiting:
            send_bytes = each.send.size
            if count and size + send_bytes > self._replica.limits.batch_bytes:
                break
            size, count = size + send_bytes, count + 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._waiting_bytes -= size + SEND_BYTES * count
        return taken, size

    def _drop_those_gone(self) -> None:
        """Their clients got an error already: nobody waits for these messages."""
        now = self._clock.now
        if self._waiting and self._waiting[0].until <= now:
            gone = [each.send for each in self._waiting if each.until <= now]
            self._waiting = [each for each in self._waiting if each.until > now]
            self._waiting_bytes -= _memory_of(gone)

    def _batch(self, lane: str, sends: list[Send], size: int) -> Batch:
        appends: dict[str, list[Any]] = {}
        epoch = self._replica.head.epoch
        for send in sends:
            if send.epoch not in (None, epoch):
                raise InvariantBroken(f"DataBeforeReference: {send} in a batch of epoch {epoch}")
            appends.setdefault(send.key, []).append(send.msg)
        self._seqs[lane] += 1
        commits, commits_size = self._take_commits()
        return Batch(
            writer=lane,
            seq=self._seqs[lane],
            epoch=epoch,
            appends=appends,
            commits=commits,
            size=size + commits_size,
        )

    def _take_commits(self) -> tuple[Offsets, int]:
        """Committed offsets for a batch, up to `batch_bytes`, and their bytes."""
        commits: Offsets = {}
        size = 0
        for key, offset in self.commits.items():
            size += len(key.encode()) + OFFSET_BYTES
            if commits and size > self._replica.limits.batch_bytes:
                break
            commits[key] = offset
        return commits, size

    def _acknowledge(self, batch: Batch, sends: list[Send]) -> Process[None]:
        for key, offset in batch.commits.items():
            if self.commits.get(key) == offset:
                del self.commits[key]
        yield from self._plan_flush()
        seq, placed = self._replica.view.placed[batch.writer]
        if seq != batch.seq or placed.keys() != batch.appends.keys():
            raise InvariantBroken(f"AckedExactlyOnce: {batch.writer} has {seq}, not {batch.seq}")
        offsets = dict(placed)
        self._replica.trace("Acked", steps.placed, batch, offsets)
        for send in sends:
            yield Reply(send.request, SendOk(offsets[send.key]))
            offsets[send.key] += 1

    def _give_up(self, error: str, text: str) -> Process[None]:
        """Answer every send that is in no batch with an error; committed offsets try again later."""
        self._flush_due = False
        yield from self._plan_flush()
        refused, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for each in refused:
            yield Reply(each.send.request, Failure(error, text))


def _memory_of(sends: Iterable[Send]) -> int:
    return sum(send.size + SEND_BYTES for send in sends)
