"""Task claiming: tasks one after the other, each done by one worker at a time, also when workers crash.

    REGISTER   {epoch, owner, beat, task, failures, dead}      a lease with these notes

A *lease* has at most one live holder per epoch (`OneLiveClaim`), on stores without ephemeral keys. Taking it
raises `epoch`; its holder raises `beat` while it works. A holder that crashed is recognised by a register that
stood still for `lease_s` seconds of the watcher's own clock. A holder that lost its lease may be slow, not
dead. So whatever a holder does must be idempotent, or refused by its epoch: every lasting effect carries the
epoch in the compare-and-set that makes it.

A worker claims the current task by taking the lease, works, and releases it: done, which makes the next task
current, or failed. Taking over from a worker that crashed counts as a failure too. After
`FAILURES_MAX` of them in a row the task is *dead*: no worker tries it again until an operator revives it.

An operator who has removed the cause, or a worker after a long pause (`revive`), writes the register anew,
with the same `epoch` and `task`: `owner` null, `failures` 0, `dead` false. It must keep `epoch`, or workers of
old epochs count again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from leaderless.core import coordination
from leaderless.core.coordination import InvariantBroken, Json, read_as
from leaderless.core.decoding import Decoder, record
from leaderless.core.pace import Pace
from leaderless.core.process import Process, Sleep
from leaderless.core.strategy import Clock

FAILURES_MAX = 5  # more of them kill more workers for nothing


@dataclass(frozen=True)
class Lease:
    """What the register of a lease holds. A lease that was never taken has epoch 0, and no register.

    `owner`: who has it, None: nobody. `rest`: see `leaderless.core.decoding.record`.
    """

    epoch: int = 0
    owner: str | None = None
    beat: int = 0
    rest: Mapping[str, Json] = field(default_factory=dict)

    @property
    def value(self) -> dict[str, Json] | None:
        """As the register holds it; None: there is none."""
        fields = vars(self)  # those of a subclass, too
        known = {name: fields[name] for name in fields if name != "rest"}
        return {**self.rest, **known} if self.epoch else None

    def require_after(self, before: "Lease") -> None:
        """What was `before` may be this, at once or later: in an epoch its owner alone goes on, or ends it.

        Raises `InvariantBroken`.
        """
        goes_on = self.owner == before.owner and self.beat >= before.beat
        if (self.epoch, self.owner is None or goes_on) < (before.epoch, True):
            raise InvariantBroken(f"OneLiveClaim: {before} became {self}")


R = TypeVar("R", bound=Lease)


def is_taken(lease: Lease) -> bool:
    """Whether a register may hold it: to take it raises its epoch to 1."""
    return lease.epoch > 0


lease_of: Decoder[Lease] = record(Lease, is_taken)  # of a register's value


class LeaseLost(Exception):
    """Another holder took the lease over; stop at once."""


class Holder(Generic[R]):
    """What one holder does with the lease in one register.

    `owner` is unique to this start of the node, so it can recognise its own lease after an unknown outcome.
    `decode` gives what the register holds, and raises `Misfit` for what no holder writes there.
    Every method may raise `StoreSilent`: then the lease may be held or not, and is found by `seek` like
    another worker's.
    """

    def __init__(
        self,
        clock: Clock,
        register: str,
        owner: str,
        lease_s: float,
        decode: Callable[[Json], R],
    ) -> None:
        self._clock = clock
        self._register = register
        self._owner = owner
        self._lease_s = lease_s
        self._decode = decode
        self._held: R | None = None
        self._known = Lease()  # what the register held when it was last seen
        self.waits: bool = False  # whether `seek` waits for a sign of life of an owner

    @property
    def held(self) -> R:
        """What the register holds, since this owner put it there."""
        assert self._held is not None, f"{self._owner} does not hold {self._register}"
        return self._held

    def seek(self) -> Process[R | None]:
        """What the register holds, None without one; with an owner in it, what it held `lease_s` ago.

        So `take` gets the lease of an owner only if the register has stood still since.
        """
        known = self._known  # taken before the read, so what is read is as new or newer
        found = yield from read_as(self._register, self._decode)
        self._known = found or Lease()
        self._known.require_after(known)
        if found is not None and found.owner is not None:
            self.waits = True
            yield Sleep(self._clock.now + self._lease_s)
            self.waits = False
        return found

    def take(self, found: R, noted: R | None = None) -> Process[bool]:
        """Take what `seek` found, in a new epoch; False when another worker has moved it since.

        `noted`: the same with other notes, which stand in the register from then on.
        """
        taken = replace(noted or found, epoch=found.epoch + 1, owner=self._owner, beat=0)
        return (yield from self._replace(found, taken))

    def beat(self) -> Process[None]:
        """Show that the holder is alive. Raises `LeaseLost` when it was taken for dead."""
        held = self.held
        if not (yield from self._replace(held, replace(held, beat=held.beat + 1))):
            raise LeaseLost(f"another worker has taken {self._register!r}")

    def release(self, noted: R | None = None) -> Process[None]:
        """Give the lease back, `noted` with other notes; one that was lost meanwhile is left alone."""
        yield from self._replace(self.held, replace(noted or self.held, owner=None))
        self._held = None

    def _replace(self, old: R, new: R) -> Process[bool]:
        new.require_after(old)
        self._held = None
        if (yield from coordination.replace(self._register, old.value, new.value)):
            self._held = self._known = new
        return self._held is not None


@dataclass(frozen=True)
class Claim(Lease):
    """What the register of a claim holds: `failures` of the current `task` in a row; `dead`: too many."""

    task: int = 0
    failures: int = 0
    dead: bool = False

    def trouble(self, waits: bool) -> str | None:
        """What is wrong, if work `waits`; None: nothing that the crash of one worker does not explain."""
        if self.dead or (waits and self.failures > 1):
            failed = f"task {self.task} has failed {self.failures} times in a row"
            return f"{failed}: what its workers wrote to stderr may say why"
        return None


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
