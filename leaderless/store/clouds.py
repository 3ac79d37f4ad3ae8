"""Object stores of clouds: how long a request takes there, and how often one may write.

Measured were compare-and-sets of one object, each after the one before [Chris Douglas, Conditional Operations
in Object Stores, January 2026, cdouglas.github.io/posts/2026/01/conditional]: S3 Standard takes 14.7 to 15.3
of them a second, S3 Express One Zone 68.6 to 75.3, Azure Blob Storage 9.2 to 10.2. Google Cloud Storage takes
0.8 to 1.4, and needs 500 to 700 ms for one. Every request is taken to last as long as such a write; reads
were not measured.

Google takes about one write a second to one object name, and answers 429 to more
[docs.cloud.google.com/storage/quotas]. The head of a log is one object. `Paced` keeps a process below that
limit, for every object; the writer of a log knows it (`Pace.commit_every_s`), so that all that waits goes into
the next commit.
"""

import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import NamedTuple, TypeVar

import anyio

from leaderless.store.files import Files, files_of
from leaderless.store.port import OutcomeUnknown, Store
from leaderless.store.wrapped import WRITES, Wrapped

T = TypeVar("T")
LONGER = (1.1, 1.3)  # times what a store asks for


class Cloud(NamedTuple):
    """A request takes `least_s` to `most_s` seconds; `every_s`: from one write of an object to the next.

    `prices`: which ones `leaderless.store.wrapped.dollars` has of it, and as of when; "": it has none.
    """

    least_s: float
    most_s: float
    every_s: float = 0.0
    prices: str = ""


GOOGLE = Cloud(
    0.5, 0.7, 1.0, "Google Cloud Storage, Standard, us-east1, list price of September 2026"
)
CLOUDS = {
    "s3": Cloud(1 / 15.3, 1 / 14.7, 0.0, "S3 Standard, us-east-1, list price of November 2026"),
    "s3-express": Cloud(1 / 75.3, 1 / 68.6),
    "azure": Cloud(1 / 10.2, 1 / 9.2),
    "gcs": GOOGLE,
}


class Paced(Wrapped):
    """A store: this process begins to write an object `every_s` seconds after it began to write it before.

    It waits a tenth to three tenths longer, by chance: requests are not all as fast. And a process that writes
    without a pause would otherwise leave no moment to any other, which is refused when it comes too early.
    """

    def __init__(self, store: Store, every_s: float, random: Random | None = None) -> None:
        super().__init__(store)
        self.files: Files | None = files_of(store)
        self._every_s = every_s
        self._random = random or Random()
        self._due: dict[str, float] = {}  # of objects that were written not long ago

    @property
    def write_every_s(self) -> float:
        """See `Wrapped`."""
        return self._every_s * sum(LONGER) / 2

    async def _asked(self, kind: str, key: str, call: Callable[[], Awaitable[T]], /) -> T:
        if kind in WRITES:
            now = anyio.current_time()
            self._due = {each: at for each, at in self._due.items() if at > now}
            at = self._due.get(key, now)
            self._due[key] = at + self._every_s * self._random.uniform(*LONGER)
            await anyio.sleep_until(at)
        return await call()


class Distant(Wrapped):
    """A store that answers as late as one in a cloud, and refuses what that refuses: for measurements.

    Whoever shares it shares its limit; `shared`: so do other processes, as the store tells when an object was
    written. Bytes take no time.
    """

    def __init__(
        self, store: Store, cloud: Cloud, random: Random | None = None, *, shared: bool = False
    ) -> None:
        super().__init__(store)
        self._shared = shared and cloud.every_s > 0.0
        self._cloud = cloud
        self._random = random or Random()
        self._open_at: dict[str, float] = {}  # when an object may be written again

    async def _asked(self, kind: str, key: str, call: Callable[[], Awaitable[T]], /) -> T:
        way_s = self._random.uniform(self._cloud.least_s, self._cloud.most_s) / 2
        await anyio.sleep(way_s)
        try:
            return await (self._put(key, call) if kind in WRITES else call())
        finally:
            await anyio.sleep(way_s)

    async def _put(self, key: str, call: Callable[[], Awaitable[T]]) -> T:
        now = anyio.current_time()
        if self._shared:
            found = await self._store.read(key)
            if found and found.modified:
                self._open_at[key] = now + found.modified + self._cloud.every_s - time.time()
        if now < self._open_at.get(key, now):
            raise OutcomeUnknown(f"429: {key} was written less than {self._cloud.every_s:g} s ago")
        answer = await call()
        if self._cloud.every_s:
            self._open_at[key] = now + self._cloud.every_s
        return answer


def like(store: Store, cloud: Cloud, *, shared: bool = False) -> Store:
    """The store as a program meets one in a cloud; `shared`: see `Distant`."""
    return Paced(Distant(store, cloud, shared=shared), cloud.every_s)
