"""One contract for every store (`leaderless.store.port`), in memory, in a file, and behind real servers.

It has every case that S3-Queue's conformance matrix asks of a store: conditional updates and creations that
succeed and that fail, racing writers with one winner a round, another version for another content, listings
after a key on a sparse index, deletion of 1 to 1000 objects, and again, listings after writes and deletions.
"""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from leaderless.conformance.bucket import in_bucket
from leaderless.store.files import WHOLE_BYTES_MAX, Files, Gone, files_of
from leaderless.store.names import FORMAT, name_of, path_segment
from leaderless.store.port import (
    Conflict,
    Refused,
    Store,
    Version,
    all_of,
)
from leaderless.store.wrapped import Within
from tests import racing
from tests.around import value_at
from tests.datadriven.programs import Programs
from tests.datadriven.runner import cases_of
from tests.objects import Objects
from tests.servers import Place

RACERS = 2  # processes, of `racing.WRITERS` writers each

pytestmark = pytest.mark.anyio

TRANSCRIPT = Path(__file__).parent / "objects.txt"
CASES = cases_of(TRANSCRIPT)


async def keys_of(store: Store, folder: str = "") -> list[str]:
    return [listed.key async for listed in all_of(store, folder)]


async def held(store: Store, key: str) -> tuple[bytes, Version] | None:
    """What an object holds, and its version."""
    found = await store.read(key)
    return found and (found.value, found.version)


@pytest.mark.parametrize("value", [b"", b"\0\xff", b"{}", b"x" * 300_000], ids=len)
async def test_what_was_written_is_read(store: Store, value: bytes) -> None:
    version = await store.write("a", value)
    assert await held(store, "a") == (value, version)


@pytest.mark.parametrize("name", CASES)
async def test_what_comes_of_calls(store: Store, name: str) -> None:
    case = CASES[name]
    played = await Programs(Objects).played_on(store, case)
    if os.environ.get("REWRITE") == "1":
        TRANSCRIPT.write_text(TRANSCRIPT.read_text().replace(case, played))
    else:
        assert played == case


async def test_the_bucket_of_the_kit_is_such_a_store() -> None:
    async with in_bucket({FORMAT: b"{}"}, lambda: None) as bucket:
        for number, case in enumerate(CASES.values()):
            store = Place(f"{bucket.place['store']}/{number}", bucket.place["endpoint"]).open()
            assert await Programs(Objects).played_on(store, case) == case
            await store.aclose()


async def test_a_listing_says_what_the_store_knows(store: Store) -> None:
    """As a read does, where the store knows when an object was written."""
    await store.write("a", b"12345")
    [listed], found = await store.list_objects("", "", 1), await store.read("a")
    assert listed.size in (5, None)
    assert listed.modified is None or listed.modified > 1e9
    assert found
    if found.modified is not None:
        assert listed.modified is not None
        assert 0 <= listed.modified - found.modified < 1  # an HTTP header has whole seconds


NAMES = [
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "a=2Fb",
    "..",
    ".",
    "",
    "a",
    "A",
    "ä",
    "a b",
    "a+b",
    "a?b#c",
    "\0",
    "~",
]


async def test_names_of_users_are_apart_and_leave_no_folder(store: Store) -> None:
    """A topic and a key of each name, through all that escapes on the way to the server and back."""
    await store.write("outside", b"x")
    for name in NAMES:
        await Within(store, f"topic/{path_segment(name)}").write("format", f"={name}".encode())
        await store.write(f"group/g/cursor/{path_segment(name)}", f"={name}".encode())
    for folder, last in (("topic", "/format"), ("group/g/cursor", "")):
        keys = await keys_of(store, folder)
        names = [key.removeprefix(f"{folder}/").removesuffix(last) for key in keys]
        assert sorted(map(name_of, names)) == sorted(NAMES)
        for key, name in zip(keys, names, strict=True):
            assert (await value_at(store, key)).decode() == f"={name_of(name)}"
    assert len(await keys_of(store)) == 2 * len(NAMES) + 1


async def test_a_second_process_sees_it_at_once(place: Place) -> None:
    first, second = place.open(), place.open()
    version = await first.create("a", b"1")
    assert await held(second, "a") == (b"1", version)
    newer = await second.compare_and_set("a", b"2", version)
    with pytest.raises(Conflict):
        await first.compare_and_set("a", b"3", version)
    assert await held(first, "a") == (b"2", newer)
    await first.aclose()
    await second.aclose()


async def test_a_value_that_does_not_fit_is_refused(store: Store) -> None:
    if store.value_bytes_max > 1 << 20:
        return  # tens of seconds to send; etcd's is the bound that logs meet
    with pytest.raises(Refused, match="bytes"):
        await store.write("a", b"x" * (store.value_bytes_max + 1))
    assert await store.read("a") is None


@pytest.mark.process
@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.slow)])
async def test_each_round_of_racing_processes_has_one_winner(place: Place, rounds: int) -> None:
    store = place.open()
    if place.url.startswith("memory:"):  # it is no store of several processes
        won, unknown = await racing.race(store, "p0", rounds)
    else:
        won, unknown = await anyio.to_thread.run_sync(race, place, rounds)
    winners = (await value_at(store, racing.KEY)).decode().split()
    await store.aclose()
    assert [int(name.split(".")[1]) for name in winners] == list(range(rounds))
    assert {*won} <= {*winners} <= {*won, *unknown}
    assert len({*won}) == len(won)
    assert unknown == [] or "s3" in place.url, "a store of this machine is always clear"


def race(place: Place, rounds: int) -> tuple[list[str], list[str]]:
    """Who was told to have won, and who got no clear answer, in processes that race."""
    command = [sys.executable, "-m", "tests.racing", place.url, place.endpoint]
    racers = [
        subprocess.Popen([*command, f"p{racer}", str(rounds)], stdout=subprocess.PIPE, text=True)
        for racer in range(RACERS)
    ]
    told: tuple[list[str], list[str]] = ([], [])
    for racer in racers:
        output, _ = racer.communicate()
        assert racer.returncode == 0
        for names, line in zip(told, output.splitlines(), strict=True):
            names.extend(line.split())
    return told


# ---------------------------------------------------------------- files, where a store has them

WITH_FILES = pytest.mark.parametrize(
    "place",
    [
        "memory",
        "sqlite",
        pytest.param("s3", marks=pytest.mark.process),
        pytest.param("ceph", marks=[pytest.mark.process, pytest.mark.stores]),
        pytest.param("azurite", marks=[pytest.mark.process, pytest.mark.stores]),
    ],
    indirect=True,
)


@pytest.fixture
def files(store: Store) -> Files:
    """The files of a store below a prefix."""
    found = files_of(Within(store, "topic/x"))
    assert found is not None
    return found


@WITH_FILES
async def test_a_file_is_read_in_ranges(files: Files) -> None:
    content = bytes(range(256)) * 40

    def use() -> None:
        files.put("run/0-1.parquet", content)
        files.put("run/0-1.parquet", b"another")  # it stays as it is
        assert files.size("run/0-1.parquet") == len(content)
        assert files.read_range("run/0-1.parquet", 1000, 500) == content[1000:1500]
        assert files.read_range("run/0-1.parquet", len(content) - 8, 8) == content[-8:]

    await anyio.to_thread.run_sync(use)


@WITH_FILES
async def test_a_large_file_comes_from_the_disk_whole(files: Files, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789abcdef" * (WHOLE_BYTES_MAX // 16 + 1))

    def use() -> None:
        with source.open("rb") as content:
            files.put("merged/large.parquet", content)
        size = source.stat().st_size
        assert files.size("merged/large.parquet") == size
        assert files.read_range("merged/large.parquet", size - 4, 4) == b"cdef"

    await anyio.to_thread.run_sync(use)


@WITH_FILES
async def test_files_are_listed_and_deleted(files: Files) -> None:
    def use() -> None:
        for name in ("merged/b.parquet", "merged/a.parquet", "run/c.parquet"):
            files.put(name, b"12345")
        listed = [*files.list_files("merged")]
        assert [(each.key, each.size) for each in listed] == [
            ("merged/a.parquet", 5), ("merged/b.parquet", 5),
        ]  # fmt: skip
        assert all(each.modified for each in listed)
        files.delete(["merged/a.parquet", "merged/none.parquet"])
        assert [each.key for each in files.list_files("merged")] == ["merged/b.parquet"]
        with pytest.raises(Gone):
            files.size("merged/a.parquet")
        with pytest.raises(Gone):
            files.read_range("merged/a.parquet", 0, 1)
        assert [*files.list_files("none")] == []
        assert files.location("run/c.parquet").endswith("topic/x/run/c.parquet")

    await anyio.to_thread.run_sync(use)
