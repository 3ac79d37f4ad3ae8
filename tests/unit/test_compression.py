"""Frames of zstd (`leaderless.store.compression`); who has no zstd is told what to install."""

import sys

import orjson
import pytest
from backports import zstd

from leaderless.errors import Broken, Definite, LogError
from leaderless.hosting.place import ensure_log
from leaderless.store.calls import read_value
from leaderless.store.compression import REGISTER_BYTES, compressed
from leaderless.store.memory import MemoryStore
from leaderless.upkeep.fsck import check
from tests.around import value_at

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]
TEXT = orjson.dumps({"base": 0, "entries": [["a", n, {}, {}, 1] for n in range(99)]})
FRAME = compressed(TEXT)
BOMB = zstd.compress(bytes(REGISTER_BYTES + 1))


WRONG: dict[str, bytes] = {
    "its end is missing": FRAME[:-1],
    "its header alone": FRAME[:5],
    "something follows": FRAME + b"1",
    "another frame follows": FRAME + FRAME,
    "one bit is wrong": FRAME[:40] + bytes([FRAME[40] ^ 1]) + FRAME[41:],
    "it has more than a register may have": BOMB,
    "it says less than it has": FRAME[:5] + bytes([FRAME[5] - 1]) + FRAME[6:],
    "it is compressed twice": compressed(FRAME * 9),
}


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_no_frame_is_no_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)
    store = MemoryStore()
    assert (await ensure_log(store, compression="zstd")).shape.compression == "zstd"
    await store.write("segment/0", WRONG[name])
    with pytest.raises(Broken, match="'segment/0' makes no sense"):
        await read_value(store, "segment/0", lambda value: value)
    assert next(each.object for each in (await check(store)).findings) == "segment/0"


async def test_a_frame_holds_what_was_compressed() -> None:
    store = MemoryStore()
    await store.write("segment/0", FRAME)
    held = await read_value(store, "segment/0", lambda value: value)
    assert held
    assert orjson.dumps(held.value) == TEXT
    assert len(FRAME) < len(TEXT) / 3
    assert compressed(b"17") == b"17"


async def test_who_lacks_the_package_is_told_which_extra_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, plain = MemoryStore(), MemoryStore()
    await ensure_log(store, compression="zstd")
    await store.write("segment/0", FRAME)
    monkeypatch.setitem(sys.modules, zstd.__name__, None)
    for call in (
        lambda: ensure_log(store),
        lambda: ensure_log(plain, compression="zstd"),
        lambda: read_value(store, "segment/0", lambda value: value),
    ):
        with pytest.raises(Definite, match=r"backports\.zstd: pip install '\.\[zstd\]'"):
            await call()
    assert [*await plain.list_objects()] == []


@pytest.mark.parametrize(("before", "after"), [(None, "zstd"), ("zstd", "none")])
async def test_a_log_keeps_its_compression(before: str | None, after: str) -> None:
    store = MemoryStore()
    await ensure_log(store, compression=before)  # type: ignore[arg-type]
    made = orjson.loads(await value_at(store, "format"))["shape"]
    assert made.get("compression") == before
    with pytest.raises(LogError, match="it keeps that for all its life"):
        await ensure_log(store, compression=after)  # type: ignore[arg-type]
    assert not (await ensure_log(store)).new
