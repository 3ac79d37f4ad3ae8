"""What answers that make no sense do to a log: nothing, or an error that says what came."""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import pytest

from leaderless import Record, open_log
from leaderless.errors import Indefinite
from leaderless.hosting.fsck import check
from leaderless.store.memory import MemoryStore
from leaderless.store.port import (
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Version,
    require_page,
)
from tests.wrong_stores import Renames

pytestmark = pytest.mark.anyio
Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "half": lambda body: body[: len(body) // 2],
    "empty": lambda _: b"",
    "garbage": lambda body: b"\xff" * len(body),
    "of another object": lambda _: b'{"format":1,"made_by":"another"}',
    "of another kind": lambda _: b"[]",
}
SHORT: Any = {"patience_s": 1.0, "store_timeout_s": 0.2}


class Damaged(MemoryStore):
    """Each `every`th read of an object of the log is damaged, in all ways in turn; 0: none is.

    `only`: the beginning of the keys that it concerns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.every, self.only = 0, ""
        self.damages = cycle(DAMAGES.values())
        self._reads = 0

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        if not found or not self.every or not key.startswith(self.only) or key == "format":
            return found
        self._reads += 1
        if self._reads % self.every:
            return found
        return found._replace(value=next(self.damages)(found.value))


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> Damaged:
    store = Damaged()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


async def test_damaged_answers_lose_and_double_nothing(damaged: Damaged) -> None:
    """Two processes append in turn, so that each must read what the other one wrote."""
    async with open_log("memory:") as one, open_log("memory:") as other:
        damaged.every = 3
        for number in range(20):
            assert await one.append("k", [number, "one"]) == 2 * number
            assert await other.append("k", [number, "other"]) == 2 * number + 1
        async with open_log("memory:") as third:
            records = await third.read("k", limit=100)
        damaged.every = 0
    values: list[Any] = [[number, name] for number in range(20) for name in ("one", "other")]
    assert records == [Record("k", offset, value) for offset, value in enumerate(values)]
    assert (await check(damaged)).findings == []


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_log_whose_head_stays_damaged_says_what_came(damaged: Damaged, damage: str) -> None:
    async with open_log("memory:", **SHORT) as log:
        await log.append("k", 1)
    async with open_log("memory:", **SHORT) as log:
        damaged.every, damaged.only = 1, "head"
        damaged.damages = cycle([DAMAGES[damage]])
        with pytest.raises(
            Indefinite, match=r"'head' makes no sense|'head' could not be read: it holds no"
        ):
            await log.append("k", 2)
        damaged.every = 0
        assert await log.append("k", 3) in (1, 2)


async def test_appends_to_a_store_that_takes_no_shown_version_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Renames()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    async with open_log("memory:", **SHORT) as log:
        await log.append("k", 1)
    async with open_log("memory:", **SHORT) as log:
        with pytest.raises(
            Indefinite, match=r"the store shows version 'W/.*', and takes no update of it"
        ):
            await log.append("k", 2)


class Repeats(Damaged):
    """Something sends each third write again when its answer is late: the second try meets the first one."""

    writes = 0

    async def write(self, key: str, value: bytes) -> Version:
        version = await super().write(key, value)
        self.writes += 1
        if self.writes % 3 == 0:
            raise Conflict("412")
        return version


async def test_a_conflict_for_an_own_success_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`init` refuses such a store where it sees it; it may be so only now and then."""
    store = Repeats()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    async with open_log("memory:") as one, open_log("memory:") as other:
        for number in range(20):
            assert await one.append("k", 2 * number) == 2 * number
            assert await other.append("k", 2 * number + 1) == 2 * number + 1
        records = await one.read("k", limit=100)
    assert [record.value for record in records] == list(range(40))
    assert store.writes > 40


# ---------------------------------------------------------------- listings


@pytest.mark.parametrize(
    ("keys", "folder", "after"),
    [
        (["b/1"], "a", ""),
        (["a/1", "b/1"], "a", ""),
        (["a/2", "a/1"], "a", ""),
        (["a/1", "a/1"], "a", ""),
        (["a/1"], "a", "a/1"),
        (["ab"], "a", ""),
        (["a"], "", "b"),
    ],
)
def test_a_listing_of_something_else_is_no_answer(
    keys: Sequence[str], folder: str, after: str
) -> None:
    page = [Listed(key, None, None) for key in keys]
    with pytest.raises(OutcomeUnknown, match="is no answer to a listing of"):
        require_page(page, folder, after)


def test_a_listing_in_order_is_one() -> None:
    for folder, after, keys in (
        ("", "", ["a", "b/1"]),
        ("a", "a/1", ["a/2", "a/3"]),
        ("a", "", []),
    ):
        page = [Listed(key, None, None) for key in keys]
        assert require_page(page, folder, after) == page
