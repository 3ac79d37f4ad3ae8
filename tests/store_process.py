"""One process on a store whose calls meet what a transcript says: it dies, waits, loses answers, is refused."""

from collections.abc import Callable
from typing import Any, ClassVar

import anyio
from anyio.abc import TaskGroup

from leaderless.errors import LogError
from leaderless.hosting.place import initialise
from leaderless.store.port import Conflict, Found, OutcomeUnknown, Refused, Store
from leaderless.store.registers import canonical
from leaderless.store.wrapped import WRITES, Counted
from tests.around import ANY, DAMAGES, READS, UPDATES, Fate, Fated, cut_off, damaged
from tests.datadriven.words import value_of

TROUBLE: tuple[type[Exception], ...] = (LogError, OutcomeUnknown, TimeoutError)
VERBS = {"reads": READS, "writes": WRITES, "calls": ANY}
UNCLEAR = OutcomeUnknown("503")
# What so many requests about some objects meet, until the process goes on.
MEETS: dict[str, dict[str, Any]] = {
    "loses": {"kinds": WRITES, "ends": UNCLEAR, "applied": False},
    "misses": {"kinds": WRITES, "ends": UNCLEAR},
    "conflicts": {"kinds": UPDATES, "ends": Conflict("412")},
    "refuses": {"kinds": WRITES, "ends": Refused("403: AccessDenied"), "applied": False},
    "halves": {"kinds": READS, "ends": cut_off},
    "garbles": {"kinds": READS, "ends": damaged(DAMAGES["garbage"])},
}
TOMBSTONE = canonical({"deleted": True})
Names = Callable[[], str]


class Process:
    """One process: its view of the store, and what becomes of its requests.

    A command is a method of its, with an underscore before its name, or whatever `calls` finds. `within`: where
    its objects are. `trouble`: what its commands may raise.
    """

    within: ClassVar[str] = ""
    named: ClassVar[str] = "{0}-{0:024x}"
    trouble: ClassVar = TROUBLE

    def __init__(self, store: Store, tasks: TaskGroup, names: Names) -> None:
        self.fated = Fated(store)
        self.store = Counted(self.fated)
        # How large Parquet files are is Arrow's matter.
        self.store.files = self.fated.files  # type: ignore[attr-defined]
        self._tasks, self._name = tasks, names
        self._until: list[Fate] = []  # what ends when it goes on
        self._goes_on = anyio.Event()

    async def open(self) -> None:
        """Begin."""

    def ends(self) -> None:
        """It has died, and nobody waits for it any more."""

    @staticmethod
    async def initialise(store: Store, _name: Names) -> str:
        """Make what is on the store."""
        return "made" if (await initialise(store)).new else "it is there"

    @staticmethod
    def key_of(word: str) -> str:
        """The key of an object that is called so."""
        return word

    @staticmethod
    def seen(key: str, value: bytes) -> str:
        """An object as it is listed; "": it is left out."""
        return f"{key} (deleted)" if value == TOMBSTONE else key

    async def carry_out(self, what: str, words: list[str]) -> Any:
        """Carry out a command."""
        if own := getattr(self, f"_{what}", None):
            return await own(*words)
        if what in MEETS:
            number, place = words
            return self.meets(Fate(place=place, times=int(number), **MEETS[what]), until=True)
        return await self.calls(what)(*map(value_of, words))

    def calls(self, what: str) -> Callable[..., Any]:
        """What a command calls that is none of its own."""
        raise NotImplementedError(what)

    def meets(self, fate: Fate, *, until: bool = False) -> None:
        """Requests of its meet this first, `until` it goes on."""
        self.fated.fates.insert(0, fate)
        self._until += [fate] if until else []

    async def _dies(self, when: str = "now", what: str = "") -> None:
        gone = Fate(applied=False, ends=OutcomeUnknown("the process is dead"))

        async def die() -> None:
            self.meets(gone)

        if when == "now":
            await die()
        elif when == "after":
            lost = OutcomeUnknown("the answer was lost")
            self.meets(Fate(WRITES, what, lost, after=die, times=1))
        else:
            died = OutcomeUnknown("the process died before this write")
            self.meets(Fate(WRITES, "", died, applied=False, before=die, passes=int(what)))

    async def _stops(self, _at: str, place: str, verb: str = "calls") -> None:
        self.meets(Fate(VERBS[verb], place, before=self._goes_on.wait), until=True)

    async def _hangs(self, _at: str, place: str) -> None:
        self.meets(Fate(place=place, after=self._goes_on.wait), until=True)

    async def _misreads(self, name: str, _as: str, text: str) -> None:
        shown = Found(text.encode(), "1")
        self.meets(Fate(READS, name, shown, applied=False), until=True)

    async def _trusts(self, name: str) -> None:
        self.fated.unmodified = name

    async def _goes(self, _on: str) -> None:
        self._goes_on.set()
        self._goes_on = anyio.Event()
        while self._until:
            self._until.pop().times = 0
        self.fated.unmodified = ""

    async def _requests(self) -> str:
        counted = self.store
        told = [f"{number} {kind}" for kind, number in sorted(counted.requests.items())]
        moved = {"read": counted.bytes_read, "written": counted.bytes_written}
        told += [f"{size} bytes {how}" for how, size in moved.items() if size]
        counted.clear()
        return ", ".join(told) or "none"
