"""One conformance suite for the key-value services, and what sets each apart."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from bench.services import SEQUENTIAL_WINDOW, Sequential, default_services, respond_kv

JSON_VALUES = [0, 1, 1.0, True, False, None, "1", "", [], [1, [2]], {}, {"a": 1, "b": [None]}]


def random_stream(name: str) -> Random:
    return Random(f"test/{name}")


@pytest.fixture(params=["lin-kv", "seq-kv", "lww-kv"])
def name(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def store(name: str) -> Callable[..., Any]:
    """A function that sends one request from one client until both replicas or windows agree."""
    service = default_services(random_stream)[name]

    def ask(kind: str, **fields: Any) -> dict[str, Any]:
        reply = service.handle("n0", {"type": kind, "msg_id": 1, **fields})
        # lww-kv: enough gossip that one replica has what the other has.
        for _ in range(50):
            service.handle("n0", {"type": "read", "key": "gossip"})
        return reply

    return ask


def code(reply: dict[str, Any]) -> Any:
    assert (reply["type"], isinstance(reply["text"], str)) == ("error", True)
    return reply["code"]


Step = tuple[str, dict[str, Any], int | dict[str, Any]]
READ: dict[str, Any] = {"key": "k"}
OK = {"type": "cas_ok"}


def cas(before: Any, after: Any, **more: Any) -> dict[str, Any]:
    return {"key": "k", "from": before, "to": after, **more}


def wrote(value: Any) -> Step:
    return "write", {"key": "k", "value": value}, {"type": "write_ok"}


def has(value: Any) -> Step:
    return "read", READ, {"type": "read_ok", "value": value}


# Requests with their replies, or with the codes of their errors.
CONVERSATIONS: dict[str, list[Step]] = {
    "a missing key": [("read", READ, 20), ("cas", cas(1, 2), 20), ("read", READ, 20)],
    "cas": [
        wrote({"a": [1]}),
        ("cas", cas({"a": [2]}, 3), 22),
        ("cas", cas({"a": [1]}, 3), OK),
        has(3),
    ],
    "values are compared with their types": [
        wrote(1),
        *(("cas", cas(looks_equal, 2), 22) for looks_equal in (1.0, True, "1")),
    ],
    "the order of fields is no matter": [
        wrote({"a": 1, "b": 2}),
        ("cas", cas({"b": 2, "a": 1}, 0), OK),
    ],
    "an unknown request": [("delete", READ, 10)],
    "an existing value is compared, also if it may be created": [
        wrote(1),
        ("cas", cas(None, 5, create_if_not_exists=True), 22),
    ],
}


@pytest.mark.parametrize("case", CONVERSATIONS)
def test_a_conversation(store: Callable[..., Any], case: str) -> None:
    for kind, fields, expected in CONVERSATIONS[case]:
        reply = store(kind, **fields)
        assert (code(reply) if isinstance(expected, int) else reply) == expected


@pytest.mark.parametrize("value", JSON_VALUES, ids=repr)
def test_any_json_can_be_stored(store: Callable[..., Any], value: Any) -> None:
    assert store("write", key="k", value=value) == {"type": "write_ok"}
    read = store("read", key="k")["value"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("key", JSON_VALUES, ids=repr)
def test_any_json_can_be_a_key(store: Callable[..., Any], key: Any) -> None:
    others = [each for each in JSON_VALUES if repr(each) != repr(key)]
    for other in others:
        store("write", key=other, value="another")
    assert code(store("read", key=key)) == 20
    store("write", key=key, value="mine")
    assert store("read", key=key)["value"] == "mine"


def test_a_long_value_is_cut_in_the_text_of_a_mismatch(store: Callable[..., Any]) -> None:
    store("write", key="k", value="x" * 100_000)
    assert len(store("cas", **cas(1, 2))["text"]) < 300


def test_create_if_not_exists_works_where_the_store_is_no_lww_kv(
    name: str, store: Callable[..., Any]
) -> None:
    reply = store("cas", **cas(None, 5, create_if_not_exists=True))
    if name == "lww-kv":
        assert code(reply) == 20
    else:
        assert reply == {"type": "cas_ok"}
        assert store("read", key="k")["value"] == 5


@pytest.mark.parametrize(("name", "reader"), [("lin-kv", "n1"), ("seq-kv", "n0")])
def test_lin_kv_reads_what_was_written_last_and_seq_kv_what_its_client_wrote(
    name: str, reader: str
) -> None:
    service = default_services(random_stream)[name]
    for number in range(100):
        service.handle("n0", {"type": "write", "key": "k", "value": number})
        assert service.handle(reader, {"type": "read", "key": "k"})["value"] == number


def sequential() -> Sequential:
    return Sequential(respond_kv, Random(3))


def write(service: Sequential, client: str, number: int) -> None:
    service.handle(client, {"type": "write", "key": "k", "value": number})


def read(service: Sequential, client: str) -> int:
    return int(service.handle(client, {"type": "read", "key": "k"}).get("value", -1))


def test_seq_kv_lets_a_client_see_old_states_but_only_forward() -> None:
    service = sequential()
    for number in range(10):
        write(service, "writer", number)
    seen = [read(service, "reader") for _ in range(60)]
    assert seen == sorted(seen)
    assert seen[0] < 9
    assert seen[-1] == 9


def test_seq_kv_forgets_states_behind_its_window() -> None:
    service = sequential()
    newest = 200
    for number in range(newest + 1):
        write(service, "writer", number)
    first_reads = [read(service, f"reader {each}") for each in range(300)]
    assert min(first_reads) == newest - SEQUENTIAL_WINDOW + 1
    assert max(first_reads) == newest


def test_seq_kv_may_go_back_for_a_client_that_is_more_than_32_changes_behind() -> None:
    service = sequential()
    seen = []
    for number in range(2000):
        write(service, "writer", number)
        if number % 100 == 99:
            seen += [read(service, "reader") for _ in range(3)]
    went_back = sum(after < before for before, after in pairwise(seen))
    assert 0 < went_back < len(seen) / 2


def test_seq_kv_never_goes_back_for_a_client_within_its_window() -> None:
    service = sequential()
    seen = []
    for number in range(1000):
        write(service, "writer", number)
        seen.append(read(service, "reader"))
    behind = [number - value for number, value in enumerate(seen)]
    assert max(behind) < SEQUENTIAL_WINDOW, "this client never fell out of the ring"
    assert seen == sorted(seen)


def test_seq_kv_runs_what_would_change_something_on_the_newest_state() -> None:
    service = sequential()
    for number in range(10):
        write(service, "writer", number)
    cas = {"type": "cas", "key": "k", "from": 4, "to": 99}
    replies = [service.handle(f"other {each}", cas) for each in range(50)]
    assert {reply.get("code") for reply in replies} <= {20, 22}
    assert read(service, "writer") == 9


def test_lww_kv_reads_can_be_stale_and_replicas_agree_in_the_end() -> None:
    service = default_services(random_stream)["lww-kv"]
    stale = 0
    for number in range(100):
        service.handle("n0", {"type": "write", "key": "k", "value": number})
        stale += service.handle("n0", {"type": "read", "key": "k"}).get("value") != number
    assert stale > 5
    for _ in range(50):
        service.handle("n0", {"type": "read", "key": "k"})
    assert (
        len({service.handle("n0", {"type": "read", "key": "k"})["value"] for _ in range(50)}) == 1
    )


def test_lin_tso_counts_from_zero() -> None:
    service = default_services(random_stream)["lin-tso"]
    replies = [service.handle("n0", {"type": "ts"}) for _ in range(3)]
    assert replies == [{"type": "ts_ok", "ts": number} for number in range(3)]
    assert code(service.handle("n0", {"type": "read"})) == 10
