"""What `leaderless init` finds out about a store (`leaderless.store.probe`): each here breaks one law."""

from collections.abc import Sequence

import pytest

from leaderless.store.memory import MemoryStore
from leaderless.store.port import (
    PAGE,
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    Store,
    Version,
)
from leaderless.store.probe import probe
from tests.around import CutOff
from tests.wrong_stores import Overwrites, Renames

pytestmark = pytest.mark.anyio


class Stale(MemoryStore):
    """A read shows the state before the last change."""

    async def read(self, key: str) -> Found | None:
        shown = self._before.get(key)
        self._before[key] = await super().read(key)
        return shown

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, Found | None] = {}


class StaleAfterUpdates(Stale):
    """A read right after a creation shows it, one after an update does not."""

    async def create(self, key: str, value: bytes) -> Version:
        version = await super().create(key, value)
        self._before[key] = Found(value, version)
        return version


class Undead(MemoryStore):
    """What was deleted is still shown."""

    async def delete(self, keys: Sequence[str]) -> None:
        pass


class Forgetful(MemoryStore):
    """A listing does not show what is new."""

    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        return []


class OverwritesVersions(MemoryStore):
    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return await self.write(key, value)


class NeverUpdates(MemoryStore):
    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        raise Conflict("always")


class NeverCreates(MemoryStore):
    async def create(self, key: str, value: bytes) -> Version:
        raise Conflict("always")


class GivesOtherVersions(MemoryStore):
    """So does the answer of a write."""

    async def create(self, key: str, value: bytes) -> Version:
        return f"W/{await super().create(key, value)}"

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return f"W/{await super().compare_and_set(key, value, version)}"


class RepeatsCreations(MemoryStore):
    """The first answer gets lost, and the second try meets what the first one made."""

    async def create(self, key: str, value: bytes) -> Version:
        await super().create(key, value)
        raise Conflict("412")


class RepeatsUpdates(MemoryStore):
    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        await super().compare_and_set(key, value, version)
        raise Conflict("412")


class ListsOtherSizes(MemoryStore):
    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        page = await super().list_objects(folder, after, limit)
        return [listed._replace(size=1_000) for listed in page]


class ListsOtherTimes(MemoryStore):
    async def list_objects(
        self, folder: str = "", after: str = "", limit: int = PAGE
    ) -> list[Listed]:
        page = await super().list_objects(folder, after, limit)
        return [listed._replace(modified=(listed.modified or 0) + 3600) for listed in page]


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (Stale(), "shows an old state after a write: it is not strongly consistent"),
        (StaleAfterUpdates(), "shows an old state after an update: it is not strongly consistent"),
        (Undead(), "shows an object after it was deleted"),
        (Forgetful(), "does not list what was written before"),
        (Overwrites(), "overwrites what exists: it ignores If-None-Match"),
        (OverwritesVersions(), "overwrites a newer version: it ignores If-Match"),
        (NeverUpdates(), "never lets a conditional update through"),
        (NeverCreates(), "never lets an object be created"),
        (Renames(), "takes no update of the version that its reads show, 'W/"),
        (GivesOtherVersions(), "takes no update of the version that its writes give, 'W/"),
        (RepeatsCreations(), "reports a conflict for a write that took effect"),
        (RepeatsUpdates(), "reports a conflict for a write that took effect"),
        (ListsOtherSizes(), "lists 1000 bytes, and a read gives"),
        (ListsOtherTimes(), "gives a listing and a read different times"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_each_law_that_a_store_breaks_is_named(store: Store, text: str) -> None:
    with pytest.raises(Refused, match=text):
        await probe(store)


async def test_a_store_that_keeps_the_laws_is_left_as_it_was() -> None:
    store = MemoryStore()
    await probe(store)
    assert await store.list_objects() == []


async def test_an_answer_that_nobody_wrote_is_no_verdict() -> None:
    with pytest.raises(OutcomeUnknown, match="a read has what nobody wrote"):
        await probe(CutOff())
