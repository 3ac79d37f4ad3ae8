"""A lease: at most one live holder per epoch (`OneLiveClaim`), on stores without ephemeral keys.

    REGISTER   {epoch, owner, beat, ...}      what else it holds are its users' notes (`claims`)

Taking it raises `epoch`; its holder raises `beat` while it works. A holder that crashed is recognised by a
register that stood still for `lease_s` seconds of the watcher's own clock.

What this cannot give: that whom the lease was taken from has stopped. It may be slow, not dead. So whatever a
holder does must be idempotent, or refused by its epoch: every lasting effect carries the epoch in the
compare-and-set that makes it.
"""

from collections.abc import Callable
from reprlib import repr as brief
from typing import Any

from leaderless.core.coordination import Misfit, count_of, read_as, replace
from leaderless.core.process import Process, Sleep
from leaderless.core.strategy import Clock

State = dict[str, Any]
NEVER_TAKEN: State = {"epoch": 0, "owner": None, "beat": 0}


def lease_of(value: object) -> State:
    """What a register of a lease holds, as it is. Raises `Misfit`."""
    if isinstance(value, dict) and isinstance(value.get("owner", 0), str | None):
        count_of(value.get("beat"))
        if count_of(value.get("epoch")):  # to take it raises it to 1
            return value
    raise Misfit(f"no lease: {brief(value)}")


class LeaseLost(Exception):
    """Another holder took the lease over; stop at once."""


class Lease:
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
        decode: Callable[[object], State] = lease_of,
    ) -> None:
        self._clock = clock
        self._register = register
        self._owner = owner
        self._lease_s = lease_s
        self._decode = decode
        self._held: State | None = None

    @property
    def held(self) -> State:
        """What the register holds, since this owner put it there."""
        assert self._held is not None, f"{self._owner} does not hold {self._register}"
        return self._held

    def seek(self) -> Process[State]:
        """What the register holds; with an owner in it, what it held `lease_s` ago.

        So `take` gets the lease of an owner only if the register has stood still since.
        """
        found = (yield from read_as(self._register, self._decode)) or NEVER_TAKEN
        if found["owner"] is not None:
            yield Sleep(self._clock.now + self._lease_s)
        return found

    def take(self, found: State, **notes: Any) -> Process[bool]:
        """Take what `seek` found, in a new epoch; False when another worker has moved it since."""
        claim = {"epoch": found["epoch"] + 1, "owner": self._owner, "beat": 0}
        return (yield from self._replace(found, found | notes | claim))

    def beat(self) -> Process[None]:
        """Show that the holder is alive. Raises `LeaseLost` when it was taken for dead."""
        held = self.held
        if not (yield from self._replace(held, held | {"beat": held["beat"] + 1})):
            raise LeaseLost(self._register)

    def release(self, **notes: Any) -> Process[None]:
        """Give the lease back; one that was lost meanwhile is left alone."""
        yield from self._replace(self.held, self.held | notes | {"owner": None})
        self._held = None

    def _replace(self, old: State, new: State) -> Process[bool]:
        before, self._held = (old if old["epoch"] else None), None
        if (yield from replace(self._register, before, new)):
            self._held = new
        return self._held is not None
