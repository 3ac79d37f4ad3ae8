"""A proxy damages answers of an S3 server: programs and nodes go on; `init` names what no log can live with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson
import pytest

from leaderless.cli import main
from leaderless.store.files import files_of
from leaderless.store.objects import ObjectStore, open_bucket
from leaderless.store.port import OutcomeUnknown
from tests import servers
from tests.process.test_bench import HANGS_S
from tests.process.test_log_on_stores import (
    BUCKET,
    Killed,
    keys,
    require_kept,
    require_whole,
    whole_log,
)
from tests.process.test_node_process import INIT, Node
from tests.proxy import Answer, Fate, Proxy, empty, garbage, half, proxy, without

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
DAMAGES: list[Fate] = [half, empty, garbage, "cut off"]


def page_of_a_proxy(answer: Answer) -> Answer:
    """What some middle box says."""
    return answer[0], answer[1], b"<html><body>please log in</body></html>"


def store_at(endpoint: str) -> ObjectStore:
    return open_bucket("s3", servers.BUCKET, servers.s3_options(endpoint))


# ---------------------------------------------------------------- each operation of the port


@contextmanager
def meets(endpoint: str, *fates: Fate) -> Iterator[Proxy]:
    """A proxy that deals `fates` to the first requests, and passes on all else."""
    left = [*fates]
    with proxy(endpoint, lambda *_: left.pop(0) if left else "ok") as server:
        yield server


@pytest.mark.parametrize("etag", [without("etag"), lambda answer: with_etag(answer, '""')])
async def test_an_answer_without_an_etag_is_unknown_and_no_refusal(mock: str, etag: Fate) -> None:
    with meets(mock, "ok", etag, etag, etag, etag) as server:
        store = store_at(server.url)
        version = await store.create("a", b"1")
        for request in (
            store.read("a"),
            store.compare_and_set("a", b"2", version),
            store.create("b", b"1"),
            store.write("c", b"1"),
        ):
            with pytest.raises(OutcomeUnknown):
                await request
        for key, value in (("a", b"2"), ("b", b"1"), ("c", b"1")):  # they all took effect
            found = await store.read(key)
            assert found
            assert found.value == value


def with_etag(answer: Answer, etag: str) -> Answer:
    status, headers, body = answer
    return status, [(n, v) for n, v in headers if n.lower() != "etag"] + [("ETag", etag)], body


@pytest.mark.parametrize("damage", DAMAGES)
async def test_listings_and_deletions_that_make_no_sense_are_unknown(
    mock: str, damage: Fate
) -> None:
    with meets(mock, "ok", damage, damage, damage) as server:
        store = store_at(server.url)
        await store.write("d/1", b"1")
        with pytest.raises(OutcomeUnknown):
            await store.list_objects("d")
        with pytest.raises(OutcomeUnknown):
            await anyio.to_thread.run_sync(lambda: [*store.files.list_files("d")])
        with pytest.raises(OutcomeUnknown):
            await store.delete(["d/1", "d/2"])
        assert await store.list_objects("d") == []


@pytest.mark.parametrize("damage", [half, empty, "cut off"])
async def test_a_range_that_is_too_short_is_unknown(mock: str, damage: Fate) -> None:
    with meets(mock, "ok", damage) as server:
        files = files_of(store_at(server.url))
        assert files

        def use() -> None:
            files.put("a", b"0123456789")
            with pytest.raises(OutcomeUnknown):
                files.read_range("a", 2, 6)
            assert files.read_range("a", 2, 6) == b"234567"

        await anyio.to_thread.run_sync(use)


async def test_a_listing_of_another_folder_is_unknown(mock: str) -> None:
    with meets(mock) as server:
        store = store_at(server.url)
        for key in ("a/1", "b/1"):
            await store.write(key, b"1")
        listings: list[Answer] = []

        def kept(answer: Answer) -> Answer:
            listings.append(answer)
            return listings[0]

        server.fate = lambda *_: kept
        await store.list_objects("a")
        with pytest.raises(OutcomeUnknown, match="'a/1' is no answer to a listing of 'b'"):
            await store.list_objects("b")


# ---------------------------------------------------------------- programs and nodes


def some_damaged(every: int) -> Callable[[str, str, dict[str, str]], Fate]:
    """Each so many answers to a request for an object, and each so many to a write, make no sense."""
    counts = {"GET": 0, "PUT": 0}
    reads: Iterator[Fate] = cycle(
        [half, empty, garbage, page_of_a_proxy, "cut off", without("etag")]
    )

    def fate(method: str, path: str, _headers: dict[str, str]) -> Fate:
        if method not in counts or "/format" in path:
            return "ok"
        counts[method] += 1
        if counts[method] % every:
            return "ok"
        return without("etag") if method == "PUT" else next(reads)

    return fate


async def test_programs_go_on_when_answers_are_damaged(mock: str) -> None:
    """Two programs append to one log, so each reads what the other one wrote."""
    url = f"{BUCKET}/log"
    async with anyio.create_task_group():
        first = Killed(url, mock, "first")
        await anyio.to_thread.run_sync(first.wait_for, 4)  # it has made the log
        with proxy(mock, some_damaged(4)) as server:
            programs = [Killed(url, server.url, name) for name in ("a", "b")]
            for program in programs:
                await anyio.to_thread.run_sync(program.wait_for, 60)
            for program in (first, *programs):
                program.kill()
    acknowledged = [record for each in (first, *programs) for record in each.acknowledged]
    require_kept(acknowledged, await whole_log(url, **keys(mock)))
    await require_whole(url, servers.s3_options(mock))


def test_nodes_go_on_when_answers_are_damaged(mock: str) -> None:
    """Two nodes that know nothing of each other append to one log in turn."""
    with proxy(mock, lambda *_: "ok") as server:
        place = ("--store", f"{BUCKET}/nodes", "--freshness", "0")
        nodes = [Node(*place, **servers.environment_of(server.url)) for _ in range(2)]
        for name, node in zip(("n0", "n1"), nodes, strict=True):
            assert node.ask(INIT | {"node_id": name, "node_ids": [name]})["type"] == "init_ok"
        server.fate = some_damaged(3)
        asked = count(2)
        acknowledged: dict[int, str] = {}
        for number in range(40):
            for index, node in enumerate(nodes):
                send = {"type": "send", "key": "k", "msg": f"{number}.{index}"}
                said = node.ask(send | {"msg_id": next(asked)})
                if said["type"] == "send_ok":
                    acknowledged[said["offset"]] = f"{number}.{index}"
        server.fate = lambda *_: "ok"
        polled: dict[int, str] = {}
        poll: dict[str, Any] = {"type": "poll", "offsets": {"k": 0}}
        while msgs := nodes[0].ask(poll | {"msg_id": next(asked)})["msgs"].get("k"):
            polled.update(msgs)
            poll["offsets"] = {"k": len(polled)}
        for node in nodes:
            node.stdin.close()
        assert [node.process.wait(timeout=HANGS_S) for node in nodes] == [0, 0]
        for node in nodes:
            node.stop()
    assert len(acknowledged) > 60
    assert acknowledged.items() <= polled.items()
    assert len({*polled.values()}) == len(polled)


# ---------------------------------------------------------------- init


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in servers.environment_of("http://none").items():
        monkeypatch.setenv(name, value)


def init(capsys: pytest.CaptureFixture[str], endpoint: str) -> tuple[int, str]:
    """The exit status of `leaderless init`, and its error."""
    arguments = ["--store", f"{BUCKET}/log", "--endpoint", endpoint, "--patience", "2", "--json"]
    status = main(["init", *arguments])
    return status, orjson.loads(capsys.readouterr().out).get("error", "")


def weakened(answer: Answer) -> Answer:
    """As a proxy that compresses does it."""
    etag = next((value for name, value in answer[1] if name.lower() == "etag"), None)
    return with_etag(answer, f"W/{etag}") if etag else answer


def conflict(answer: Answer) -> Answer:
    """What the second of two equal writes gets, when the first one's answer was lost."""
    return 412, [], b"<Error><Code>PreconditionFailed</Code></Error>"


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("meant", "fate", "text"),
    [
        ("GET", weakened, "takes no update of the version that its reads show, 'W/"),
        ("PUT", weakened, "takes no update of the version that its writes give, 'W/"),
        ("if-none-match", conflict, "reports a conflict for a write that took effect"),
        ("if-match", conflict, "reports a conflict for a write that took effect"),
        ("if-none-match", 412, "never lets an object be created"),
        ("PUT", without("etag"), "does not answer as it should"),
        ("GET", without("etag"), "does not answer as it should"),
        ("GET", half, "does not answer as it should"),
    ],
)
def test_init_names_what_a_log_cannot_live_with(
    capsys: pytest.CaptureFixture[str], mock: str, meant: str, fate: Fate, text: str
) -> None:
    def chosen(method: str, _path: str, headers: dict[str, str]) -> Fate:
        return fate if meant == method or meant in headers else "ok"

    with proxy(mock, chosen) as server:
        status, said = init(capsys, server.url)
    assert status == 1
    assert text in said
