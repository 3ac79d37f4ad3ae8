"""What requests to a store meet: `Fate`s, which stand in tables, and a store that goes by them (`Fated`)."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from bench.services import Body
from leaderless.store.files import files_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, OutcomeUnknown, Store, Version
from leaderless.store.wrapped import WRITES, Wrapped
from simulation.bucket import Bucket
from simulation.port import Port, PortFiles

Call = Callable[[], Awaitable[Any]]
Happens = Callable[[], Awaitable[object]]
READS = ("read", "read_again")
UPDATES = ("create", "compare_and_set")  # what may conflict
ANY = (*READS, *WRITES, "delete", "list_objects")
ANY_NUMBER = 1 << 30


async def value_at(store: Store, key: str) -> bytes:
    """What an object holds that is there."""
    found = await store.read(key)
    assert found, f"there is no {key}"
    return found.value


async def nothing() -> None:
    """It happens."""


@dataclass
class Fate:
    """What requests of `kinds` meet that are about objects whose keys begin as `place` says.

    `before` happens; the request is carried out if it is `applied`; `after` happens, and it `ends`: an error is
    raised, a function makes the answer from the store's, and else this is the answer. `passes` requests pass
    before, and `times` meet it; of `each` object, or of all. `met`: those that came so far.
    """

    kinds: Sequence[str] = ANY
    place: str = ""
    ends: Any = None
    applied: bool = True
    before: Happens = nothing
    after: Happens = nothing
    passes: int = 0
    times: int = ANY_NUMBER
    each: bool = False
    met: Counter[str] = field(default_factory=Counter)

    def meets(self, kind: str, key: str) -> bool:
        """Whether the next request meets it."""
        if kind not in self.kinds or not re.match(self.place, key):
            return False
        counted = key if self.each else ""
        self.met[counted] += 1
        return self.passes < self.met[counted] <= self.passes + self.times

    @property
    def happened(self) -> bool:
        """Whether a request has met it, if they are counted together."""
        return self.met[""] > self.passes

    def end(self, answer: Any) -> Any:
        """How a request ends that got this answer."""
        if isinstance(self.ends, BaseException):
            raise type(self.ends)(*self.ends.args)
        ends = self.ends(answer) if callable(self.ends) else self.ends or answer
        if isinstance(ends, BaseException):
            raise ends
        return ends


class Fated(Wrapped):
    """A store around `store`, or around a new one in memory; its requests meet all `fates` that are theirs."""

    def __init__(self, store: Store | None = None, *fates: Fate) -> None:
        super().__init__(store or MemoryStore())
        files: Any = PortFiles(self) if isinstance(store, Port) else None  # type: ignore[arg-type]
        self.files = files or files_of(self._store)
        self.fates = [*fates]
        self.unmodified = ""  # the object of which it says "not modified"

    async def _asked(self, kind: str, key: str, call: Call, /) -> Any:
        met = [each for each in self.fates if each.meets(kind, key)]
        for fate in met:
            await fate.before()
            if not fate.applied:
                return fate.end(None)
        answer = await call()
        for fate in met:
            await fate.after()
        for fate in met:
            answer = fate.end(answer)
        return answer

    async def read_range(self, key: str, start: int, length: int) -> tuple[bytes, int]:
        found: Any = self._store
        answer = await self._asked("read", key, partial(found.read_range, key, start, length))
        return answer[0], answer[1]

    async def read_again(self, key: str, known: Found) -> Found | None:
        found = await super().read_again(key, known)
        return known if key == self.unmodified else found


Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "half": lambda body: body[: len(body) // 2],
    "empty": lambda _: b"",
    "garbage": lambda body: b"\xff" * len(body),
}


def damaged(damage: Damage) -> Callable[[Any], Any]:
    """What is made so of the answer to a read that finds something, or of a range of a file."""

    def ends(answer: Any) -> Any:
        if isinstance(answer, Found):
            return answer._replace(value=damage(answer.value))
        return (damage(answer[0]), answer[1]) if isinstance(answer, tuple) else answer

    return ends


cut_off = damaged(DAMAGES["half"])
LOST, NO_ANSWER = OutcomeUnknown("reset before"), OutcomeUnknown("reset after")
FATES: dict[str, dict[str, Any]] = {
    "ok": {},
    "call lost": {"applied": False, "ends": LOST},
    "answer lost": {"ends": NO_ANSWER},
    "hangs": {"after": anyio.sleep_forever},
    **{name: {"ends": damaged(damage)} for name, damage in DAMAGES.items()},
}


def in_turn(fates: Sequence[str], place: str = "", kinds: Sequence[str] = UPDATES) -> list[Fate]:
    """Requests meet these fates, one each, and all that follow the last one."""
    last = len(fates) - 1
    return [
        Fate(kinds, place, passes=at, times=1 if at < last else ANY_NUMBER, **FATES[fate])
        for at, fate in enumerate(fates)
    ]


def wrong(**shows: Any) -> Fated:
    """A store; what a kind of call shows is changed, or is an error, or this stands in place of the call."""
    return Fated(
        None, *(Fate([kind], "", ends, applied=callable(ends)) for kind, ends in shows.items())
    )


# ---------------------------------------------------------------- stores that do not keep the laws


def renames() -> Fated:
    """A read shows an ETag that updates do not know, as behind a proxy that compresses."""
    weak = Fate(READS, ends=lambda found: found and found._replace(version=f"W/{found.version}"))
    return Fated(None, weak)


class Overwrites(MemoryStore):
    """Ignores that an object must not exist, as some servers do."""

    async def create(self, key: str, value: bytes) -> Version:
        return await self.write(key, value)


def slow_port(bucket: Bucket, client: str, latency_ms: float) -> Port:
    """The way of one process to a virtual bucket: half of a latency there, half of it back."""

    def later(arrive: Callable[[Body], object], body: Body) -> None:
        asyncio.get_running_loop().call_later(latency_ms / 2000, arrive, body)

    def arrived(body: Body) -> None:
        answer = bucket.carried_out(client, body)
        later(port.answered, {**answer, "in_reply_to": body["msg_id"]})

    port = Port(partial(later, arrived), timeout_s=60.0)
    return port
