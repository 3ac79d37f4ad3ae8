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

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from leaderless.core import coordination
from leaderless.core.coordination import InvariantBroken, Json, read_as
from leaderless.core.decoding import Decoder, record
from leaderless.core.pace import Pace
from leaderless.core.process import Process, Sleep
from leaderless.core.strategy import Clock

FAILURES_MAX = 5  # more of them kill more workers for nothing


@dataclass(frozen=True)
class Claim:
    """What the register of a claim holds. A task that was never claimed has epoch 0, and no register.

    `owner`: who has it, None: nobody. `failures`: of the current `task` in a row; `dead`: too many. `rest`: see
    `leaderless.core.decoding.record`.
    """

    epoch: int = 0
    owner: str | None = None
    beat: int = 0
    task: int = 0
    failures: int = 0
    dead: bool = False
    rest: Mapping[str, Json] = field(default_factory=dict)

    @property
    def value(self) -> dict[str, Json] | None:
        """As the register holds it; None: there is none."""
        known = {name: held for name, held in vars(self).items() if name != "rest"}
        return {**self.rest, **known} if self.epoch else None

    def require_after(self, before: "Claim") -> None:
        """What was `before` may be this, at once or later: in an epoch its owner alone goes on, or ends it.

        Raises `InvariantBroken`.
        """
        goes_on = self.owner == before.owner and self.beat >= before.beat
        if (self.epoch, self.owner is None or goes_on) < (before.epoch, True):
            raise InvariantBroken(f"OneLiveClaim: {before} became {self}")

    def trouble(self, waits: bool) -> str | None:
        """What is wrong, if work `waits`; None: nothing that the crash of one worker does not explain."""
        if self.dead or (waits and self.failures > 1):
            failed = f"task {self.task} has failed {self.failures} times in a row"
            return f"{failed}: what its workers wrote to stderr may say why"
        return None

    def failed(self) -> "Claim":
        """The same after one more failure."""
        failures = self.failures + 1
        return replace(self, failures=failures, dead=failures >= FAILURES_MAX)


claim_of: Decoder[Claim] = record(Claim, lambda claim: claim.epoch > 0)  # of a register's value


class LeaseLost(Exception):
    """Another worker took the lease over; stop at once."""


class Claims:
    """Claims of one worker on the tasks of one register; `pace` says how long a lease is.

    `worker` is unique to this start of the node, so it can recognise its own claim after an unknown outcome.
    Every method may raise `StoreSilent`: then the task may be claimed or not, and is found by the next `claim`
    like another worker's.
    """

    def __init__(self, clock: Clock, register: str, worker: str, pace: Pace) -> None:
        self._clock = clock
        self._register = register
        self._worker = worker
        self._lease_s = pace.lease_s
        self._held: Claim | None = None
        self._known = Claim()  # what the register held when it was last seen
        self.waits: bool = False  # whether `claim` waits for a sign of life of who has the task
        self.dead: bool = False  # whether the last `claim` found the task dead

    @property
    def held(self) -> Claim:
        """What the register holds, since this worker put it there."""
        assert self._held is not None, f"{self._worker} does not hold {self._register}"
        return self._held

    @property
    def epoch(self) -> int:
        """The epoch of the claim that is held."""
        return self.held.epoch

    def claim(self) -> Process[int | None]:
        """Claim the current task; returns its number, None when a live worker has it or it is dead."""
        found = yield from self._seek()
        self.dead = found.dead
        noted = found.failed() if found.owner is not None else found  # its worker crashed
        if found.dead or not (yield from self._take(found, noted)):
            return None
        if noted.dead:  # the crash was one too many
            self.dead = True
            yield from self._give_back(self.held)
            return None
        return found.task

    def revive(self) -> Process[None]:
        """Let a dead task be tried again. One that is not dead, or that somebody has moved, is left alone."""
        found = yield from self._seek()
        if found.dead:
            alive = replace(found, owner=None, failures=0, dead=False)
            yield from coordination.replace(self._register, found.value, alive.value)

    def beat(self) -> Process[None]:
        """Show that the worker is alive. Raises `LeaseLost` when it was taken for dead."""
        held = self.held
        if not (yield from self._replace(held, replace(held, beat=held.beat + 1))):
            raise LeaseLost(f"another worker has taken {self._register!r}")

    def release(self, done: bool) -> Process[None]:
        """Give the task back, `done` or failed; a claim that was lost meanwhile is left alone."""
        held = self.held
        noted = replace(held, task=held.task + 1, failures=0) if done else held.failed()
        return self._give_back(noted)

    def _give_back(self, noted: Claim) -> Process[None]:
        """Release what is held, `noted` with other notes."""
        yield from self._replace(self.held, replace(noted, owner=None))
        self._held = None

    def _seek(self) -> Process[Claim]:
        """What the register holds; with an owner in it, what it held `lease_s` ago.

        So `_take` gets the task of an owner only if the register has stood still since.
        """
        known = self._known  # taken before the read, so what is read is as new or newer
        found = (yield from read_as(self._register, claim_of)) or Claim()
        self._known = found
        self._known.require_after(known)
        if found.owner is not None:
            self.waits = True
            yield Sleep(self._clock.now + self._lease_s)
            self.waits = False
        return found

    def _take(self, found: Claim, noted: Claim) -> Process[bool]:
        """Take what `_seek` found, in a new epoch, `noted` with other notes; False when it has moved since."""
        taken = replace(noted, epoch=found.epoch + 1, owner=self._worker, beat=0)
        return (yield from self._replace(found, taken))

    def _replace(self, old: Claim, new: Claim) -> Process[bool]:
        new.require_after(old)
        self._held = None
        if (yield from coordination.replace(self._register, old.value, new.value)):
            self._held = self._known = new
        return self._held is not None
