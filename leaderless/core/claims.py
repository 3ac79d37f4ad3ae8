"""Task claiming: tasks one after the other, each done by one worker at a time, also when workers crash.

    REGISTER   {epoch, owner, beat, task, failures, dead}      a lease (`lease`) with these notes

A worker claims the current task by taking the lease, works, and releases it: done, which makes the next task
current, or failed. Taking over from a worker that crashed counts as a failure too. After
`FAILURES_MAX` of them in a row the task is *dead*: no worker tries it again until an operator revives it.

An operator who has removed the cause, or a worker after a long pause (`revive`), writes the register anew,
with the same `epoch` and `task`: `owner` null, `failures` 0, `dead` false. It must keep `epoch`, or workers of
old epochs count again.
"""

from dataclasses import dataclass, replace

from leaderless.core import coordination
from leaderless.core.decoding import Decoder, record
from leaderless.core.lease import Holder, Lease, is_taken
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.strategy import Clock

FAILURES_MAX = 5  # more of them kill more workers for nothing


@dataclass(frozen=True)
class Claim(Lease):
    """What the register of a claim holds: `failures` of the current `task` in a row; `dead`: too many."""

    task: int = 0
    failures: int = 0
    dead: bool = False


claim_of: Decoder[Claim] = record(Claim, is_taken)  # of a register's value


class Claims:
    """Claims of one worker on the tasks of one register; `worker` is unique to this start of the
    node; `pace` says how long a lease is.
    """

    def __init__(self, clock: Clock, register: str, worker: str, pace: Pace) -> None:
        self._register = register
        self._lease = Holder(clock, register, worker, pace.lease_s, claim_of)
        self.dead: bool = False  # whether the last `claim` found the task dead

    @property
    def epoch(self) -> int:
        """The epoch of the claim that is held."""
        return self._lease.held.epoch

    @property
    def waits(self) -> bool:
        """Whether `claim` waits for a sign of life of the one who has the task."""
        return self._lease.waits

    def claim(self) -> Process[int | None]:
        """Claim the current task; returns its number, None when a live worker has it or it is dead."""
        found = (yield from self._lease.seek()) or Claim()
        self.dead = found.dead
        crashed = found.owner is not None
        noted = self._failed(found) if crashed else found
        if found.dead or not (yield from self._lease.take(found, noted)):
            return None
        if self._lease.held.dead:  # the crash was one too many
            self.dead = True
            yield from self._lease.release()
            return None
        return found.task

    def revive(self) -> Process[None]:
        """Let a dead task be tried again. One that is not dead, or that somebody has moved, is left alone."""
        found = (yield from self._lease.seek()) or Claim()
        if found.dead:
            alive = replace(found, owner=None, failures=0, dead=False)
            yield from coordination.replace(self._register, found.value, alive.value)

    def beat(self) -> Process[None]:
        """Show that the worker is alive. Raises `LeaseLost` when it was taken for dead."""
        return self._lease.beat()

    def release(self, done: bool) -> Process[None]:
        """Give the task back, `done` or failed; a claim that was lost meanwhile is left alone."""
        held = self._lease.held
        noted = replace(held, task=held.task + 1, failures=0) if done else self._failed(held)
        return self._lease.release(noted)

    def _failed(self, claim: Claim) -> Claim:
        failures = claim.failures + 1
        return replace(claim, failures=failures, dead=failures >= FAILURES_MAX)
