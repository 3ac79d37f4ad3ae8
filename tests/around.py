"""What requests to a store meet: rows of a table (`Row`), and a store that goes by them (`Fated`)."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import anyio

from bench.services import Body
from leaderless.store.files import files_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import PAGE, Found, Listed, OutcomeUnknown, Store, Version
from leaderless.store.wrapped import WRITES, Wrapped
from simulation.bucket import Bucket
from simulation.port import Port

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
class Row:
    """Requests of `kinds` about objects whose keys begin with `place`: `passes` of them pass, `times` meet this.

    `before` happens; the request is carried out if it is `applied`; `after` happens, and it `ends`: an error is
    raised, anything else makes the answer of what the store says.
    """

    kinds: Sequence[str] = ANY
    place: str | tuple[str, ...] = ""
    ends: Any = None
    applied: bool = True
    before: Happens = nothing
    after: Happens = nothing
    passes: int = 0
    times: int = ANY_NUMBER
    met: int = 0  # so many requests

    def meets(self, kind: str, key: str) -> bool:
        """Whether the next request meets it."""
        if kind not in self.kinds or not key.startswith(self.place):
            return False
        self.met += 1
        return self.passes < self.met <= self.passes + self.times

    async def carry_out(self, call: Call) -> Any:
        """Let a request meet it."""
        await self.before()
        answer = await call() if self.applied else None
        await self.after()
        if isinstance(self.ends, BaseException):
            raise type(self.ends)(*self.ends.args)
        ends = self.ends(answer) if callable(self.ends) else self.ends or answer
        if isinstance(ends, BaseException):
            raise ends
        return ends


class Fated(Wrapped):
    """A store around `store`, or around a new one in memory; its requests meet all `rows` that are theirs."""

    def __init__(self, store: Store | None = None, *rows: Row) -> None:
        super().__init__(store or MemoryStore())
        self.files = files_of(self._store)
        self.rows = [*rows]
        self.unmodified = ""  # the object of which it says "not modified"

    async def _asked(self, kind: str, key: str, call: Call, /) -> Any:
        for row in reversed([row for row in self.rows if row.meets(kind, key)]):
            call = partial(row.carry_out, call)
        return await call()

    async def read_again(self, key: str, known: Found) -> Found | None:
        found = await super().read_again(key, known)
        return known if key == self.unmodified else found


def half(found: Found | None) -> Found | None:
    """The first half of what a read has found."""
    return found and found._replace(value=found.value[: len(found.value) // 2])


Kind = Literal["read", "write", "create", "compare_and_set", "delete", "list_objects"]
KINDS = get_args(Kind)
T = TypeVar("T")


class Around(Wrapped):
    """A store around `store`, or around a new one in memory; every call goes through `around`."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(store or MemoryStore())
        self.files = files_of(self._store)

    async def around(self, kind: Kind, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, or not, and answer. `key`: the object, the folder, or the first that is deleted."""
        return await call()

    async def read(self, key: str) -> Found | None:
        return await self.around("read", key, partial(super().read, key))

    async def read_again(self, key: str, known: Found) -> Found | None:
        return await self.read(key)  # which a store may do, and those around it override

    async def write(self, key: str, value: bytes) -> Version:
        return await self.around("write", key, partial(super().write, key, value))

    async def create(self, key: str, value: bytes) -> Version:
        return await self.around("create", key, partial(super().create, key, value))

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return await self.around(
            "compare_and_set", key, partial(super().compare_and_set, key, value, version)
        )

    async def delete(self, keys: Sequence[str]) -> None:
        await self.around("delete", keys[0] if keys else "", partial(super().delete, keys))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        return await self.around(
            "list_objects", folder, partial(super().list_objects, folder, after, limit)
        )


class CutOff(Around):
    """Half of what is there comes with the next `times` answers about objects in `places`, `each` of each one.

    `places`: the beginnings of their keys.
    """

    def __init__(
        self,
        store: Store | None = None,
        *places: str,
        times: int = ANY_NUMBER,
        each: int = ANY_NUMBER,
    ) -> None:
        super().__init__(store)
        self.places, self.times, self.each = places or ("",), times, each
        self._damaged: Counter[str] = Counter()

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        spared = not self.times or self._damaged[key] >= self.each
        if not found or spared or not key.startswith(self.places):
            return found
        self.times -= 1
        self._damaged[key] += 1
        return found._replace(value=found.value[: len(found.value) // 2])


class Troubled(Around):
    """Updates of objects with `part` in their keys meet `fates`, one each, and all that follow the last one.

    "call lost" changes nothing, "answer lost" does. "hangs" does, too, and never answers; "mute" as well, and
    no read of such an object is answered then. `silent`: a part of the keys whose reads are not answered.
    """

    part = "/cursor/"
    fates: tuple[str, ...] = ()
    silent = "no key"

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if kind == "read" and self.silent in key:
            raise OutcomeUnknown("nobody is there")
        if kind not in UPDATES or self.part not in key or not self.fates:
            return await call()
        fate, *rest = self.fates
        self.fates = (*rest,) or self.fates
        if fate == "call lost":
            raise OutcomeUnknown("reset before")
        version = await call()
        if fate == "mute":
            self.silent = self.part
        if fate in ("answer lost", "mute"):
            raise OutcomeUnknown("reset after")
        if fate == "hangs":
            await anyio.sleep_forever()
        return version

    def heal(self) -> None:
        """From now on all is well."""
        self.fates, self.silent = (), "no key"


class Wrong(Around):
    """What a kind of call shows is changed, or is an error; an error or "" stands in place of the call."""

    def __init__(self, **shows: Any) -> None:
        super().__init__()
        self._shows = shows

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        shows = self._shows.get(kind, lambda answer: answer)
        answer = shows(await call()) if callable(shows) else shows
        if isinstance(answer, Exception):
            raise answer
        return answer


class Interrupted(Around):
    """`other` happens once, before the call number `last` that meets objects in `place`, or after that call.

    `place`: the beginning of their keys; `kinds`: of the calls.
    """

    def __init__(
        self,
        store: Store | None,
        other: Callable[[], Awaitable[object]],
        last: int = 1,
        *,
        place: str = "",
        kinds: Sequence[str] = KINDS,
        after: bool = False,
    ) -> None:
        super().__init__(store)
        self._other, self._place, self._kinds, self._after = other, place, kinds, after
        self._left = last

    @property
    def happened(self) -> bool:
        """Whether the call has come."""
        return self._left <= 0

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        meets = key.startswith(self._place) and kind in self._kinds
        self._left -= meets
        due = meets and self._left == 0
        if due and not self._after:
            await self._other()
        answer = await call()
        if due and self._after:
            await self._other()
        return answer


# ---------------------------------------------------------------- stores that do not keep the laws


class Renames(MemoryStore):
    """A read shows an ETag that updates do not know, as behind a proxy that compresses."""

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        return found and found._replace(version=f"W/{found.version}")


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
