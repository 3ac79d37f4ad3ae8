"""The store port of one process on a virtual bucket: what happens between a program and its object store.

A request travels half of its latency, is carried out at one moment, and its answer travels the other half. The
bytes of all requests of a process share one link. A fault hits a request with the odds of `Network`:

| fate | carried out | the program sees |
|---|---|---|
| `throttled` (503), `raced` (409, conditional writes alone) | no | `OutcomeUnknown` |
| `request-lost` | no | `OutcomeUnknown`, after the timeout |
| `answer-lost` | yes | `OutcomeUnknown` at once: the connection was reset |
| `answer-late` | yes | `OutcomeUnknown`, after the timeout |
| `late` | up to `late_s` after the timeout | `OutcomeUnknown`, after the timeout |

The library under the port repeats no request, as ours does not; `s3_queue.client.Repeating` is one that does.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
import orjson

from leaderless.store.port import PAGE, Conflict, Found, Listed, OutcomeUnknown, Version
from simulation.objects.bucket import Bucket
from simulation.omit import Acts

T = TypeVar("T")
LISTED_BYTES = 300  # of one object in a listing

FATES = ("throttled", "raced", "request-lost", "answer-lost", "answer-late", "late")


class Network(NamedTuple):
    """How requests fare.

    `latency_ms`: of a request with its answer, in the mean. `spread`: "constant", "uniform" (a half to one
    and a half), "exponential", or "heavy" (one in fifty takes ten times as long). `bytes_per_s`: of a process,
    each way. `odds`: of each fate, by name.
    """

    latency_ms: float = 20.0
    spread: str = "constant"
    bytes_per_s: float = 50e6
    timeout_s: float = 2.0
    late_s: float = 5.0
    odds: dict[str, float] = {}  # noqa: RUF012 - it is never changed

    def latency_s(self, random: Random) -> float:
        """Draw the latency of one request."""
        mean_s = self.latency_ms / 1000
        match self.spread:
            case "uniform":
                return mean_s * (0.5 + random.random())
            case "exponential":
                return random.expovariate(1 / mean_s) if mean_s else 0.0
            case "heavy":
                return mean_s * (10 if random.random() < 1 / 50 else 1)
            case _:
                return mean_s


class Faults:
    """Draws the fates of all requests of a run.

    `omit`: the numbers of faults that do not happen. `acts`: numbers those that are drawn. `healed`: no more
    faults.
    """

    def __init__(self, odds: dict[str, float], random: Random, omit: Sequence[int] = ()) -> None:
        self._odds = [(fate, odds.get(fate, 0.0)) for fate in FATES]
        self._random = random
        self.acts = Acts(omit)
        self.healed = False

    def draw(self, *, conditional: bool) -> str:
        """The fate of a request: one of `FATES`, or ""."""
        left = self._random.random()
        for fate, odds in self._odds:
            left -= odds
            if left < 0:
                unfit = self.healed or (fate == "raced" and not conditional)
                return "" if unfit or self.acts.omitted() else fate
        return ""


class Link:
    """One way of a connection: bytes wait for those before them."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0

    def takes_s(self, size: int, now_s: float) -> float:
        """How long from now until so many bytes have passed."""
        self._free_at = max(self._free_at, now_s) + size / self._bytes_per_s
        return self._free_at - now_s


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request: its name, which begins with its kind, and what it does at the bucket."""

    name: str
    carry_out: Callable[[], T]
    down_bytes: Callable[[T], int] = lambda _: 0
    up_bytes: int = 0
    conditional: bool = False


class VirtualStore:
    """See `leaderless.store.port.Store`. `cut`: the process is dead, nothing of it leaves any more."""

    def __init__(
        self, bucket: Bucket, client: str, network: Network, faults: Faults, random: Random
    ) -> None:
        self.url = "virtual:"
        self.value_bytes_max = 1 << 30
        self.cut = False
        self._bucket = bucket
        self.client = client
        self._network = network
        self._faults = faults
        self._random = random
        self._up, self._down = (Link(network.bytes_per_s) for _ in range(2))

    async def read(self, key: str) -> Found | None:
        """See `leaderless.store.port.Store`."""
        return await self._get(key, None)

    async def read_again(self, key: str, known: Found) -> Found | None:
        """See `leaderless.store.port.Store`."""
        return await self._get(key, known)

    async def _get(self, key: str, known: Found | None) -> Found | None:
        def get() -> Found | None:
            found = self._bucket.get(key)
            if found and known and found.version == known.version:
                self._note("get", key, b"", "unchanged")
                return known
            self._note("get", key, found.value if found else b"")
            return found

        def size(found: Found | None) -> int:
            return len(found.value) if found and found is not known else 0

        return await self._request(Call(f"get {key}", get, size))

    async def write(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put("put", key, value, lambda: self._bucket.put(key, value))

    async def create(self, key: str, value: bytes) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put("create", key, value, lambda: self._bucket.create(key, value))

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        """See `leaderless.store.port.Store`."""
        return await self._put(
            "update", key, value, lambda: self._bucket.update(key, value, version)
        )

    async def delete(self, keys: Sequence[str]) -> None:
        """See `leaderless.store.port.Store`."""

        def delete() -> None:
            self._bucket.delete(keys)
            self._note("delete", keys[0], orjson.dumps(list(keys)))

        if keys:
            await self._request(Call(f"delete {keys[0]}", delete))

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        """See `leaderless.store.port.Store`."""

        def page() -> list[Listed]:
            listed = self._bucket.listing(folder, after, limit)
            self._note("list", folder, orjson.dumps([each.key for each in listed]))
            return listed

        return await self._request(
            Call(f"list {folder}", page, lambda listed: LISTED_BYTES * len(listed))
        )

    async def aclose(self) -> None:
        """See `leaderless.store.port.Store`."""

    def _note(self, kind: str, key: str, value: bytes, outcome: str = "ok") -> None:
        self._bucket.note(self.client, kind, key, value, outcome)

    async def _put(self, kind: str, key: str, value: bytes, put: Callable[[], Version]) -> Version:
        def noted() -> Version:
            try:
                version = put()
            except Conflict:
                self._note(kind, key, value, "conflict")
                raise
            self._note(kind, key, value)
            return version

        call = Call(f"{kind} {key}", noted, up_bytes=len(value), conditional=kind != "put")
        return await self._request(call)

    async def _request(self, call: Call[T]) -> T:
        if self.cut:
            raise OutcomeUnknown("the process is dead")
        loop, network = asyncio.get_running_loop(), self._network
        answer: asyncio.Future[T] = loop.create_future()
        fate = self._faults.draw(conditional=call.conditional)
        way_s = network.latency_s(self._random) / 2

        def arrive() -> None:
            """The request is at the bucket; after the timeout nobody waits for the answer any more."""
            result, size = self._carried_out(call, fate)
            if fate not in ("late", "answer-late"):
                back_s = way_s + self._down.takes_s(size, loop.time())
                loop.call_later(back_s, settle, answer, result, context=Context())

        there_s = way_s + self._up.takes_s(call.up_bytes, loop.time())
        if fate == "late":
            there_s += network.timeout_s + network.late_s * self._random.random()
        if fate != "request-lost":
            loop.call_later(there_s, arrive, context=Context())
        with anyio.move_on_after(network.timeout_s):
            return await answer
        raise OutcomeUnknown(f"no answer within {network.timeout_s:g} s")

    def _carried_out(self, call: Call[Any], fate: str) -> tuple[Any, int]:
        """What the program gets for a request that arrives, or the error, and how many bytes that has."""
        if fate in ("throttled", "raced"):
            self._note(fate, call.name, b"", fate)
            return OutcomeUnknown(fate), 0
        try:
            result = call.carry_out()
        except Conflict as conflict:
            return OutcomeUnknown(fate) if fate == "answer-lost" else conflict, 0
        if fate == "answer-lost":
            return OutcomeUnknown("the connection was reset"), 0
        return result, call.down_bytes(result)


def settle(answer: asyncio.Future[T], result: T | Exception) -> None:
    """Hand over an answer, or an error, if somebody still waits for it."""
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
