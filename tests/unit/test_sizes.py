"""Whatever is acknowledged can be kept as it was sent, and read back by any node through any line."""

import re
from collections.abc import Callable
from math import inf, nan
from typing import Any

import orjson
import pytest

from leaderless.core.headlog.records import HEAD, Head
from leaderless.core.headlog.replica import Replica
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry, Heading, Put
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from simulation.nodes import LINEARIZABLE
from tests.driver import Driver
from tests.ported import Store
from tests.stepped import SteppedCluster

STRATEGIES = pytest.mark.parametrize("strategy", ["leaderless", "cas"])
LARGEST = Limits().message_bytes


def ask(cluster: SteppedCluster, node: str, body: dict[str, Any]) -> dict[str, Any]:
    return cluster.ask(node, body, every_s=0.02)


@STRATEGIES
@pytest.mark.parametrize(
    "text", [b"18446744073709551615", b"-9223372036854775808", b"1e20", b"-0.5", rb'"\ud83d\ude00"']
)
def test_what_can_be_kept_is_polled_as_it_was_sent(strategy: str, text: bytes) -> None:
    cluster = SteppedCluster(["n0", "n1"], strategy, LINEARIZABLE)
    send = {"type": "send", "key": "k", "msg": orjson.loads(text)}
    assert ask(cluster, "n0", send)["type"] == "send_ok"
    polled = ask(cluster, "n1", {"type": "poll", "offsets": {"k": 0}})
    assert polled["msgs"] == {"k": [[0, orjson.loads(text)]]}


def test_large_messages_are_readable_for_ever() -> None:
    """18 sends of 4.3 MB became a run of 69 MB, which no node that started later could read."""
    limits, shape = Limits(memory_bytes=1 << 20), Shape(segments_per_run=4)
    options = LINEARIZABLE._replace(limits=limits, shape=shape)
    cluster = SteppedCluster(["n0"], "leaderless", options)
    sizes = [LARGEST - 200 - number for number in range(12)]
    for size in sizes:
        assert ask(cluster, "n0", {"type": "send", "key": "k", "msg": "x" * size})["offset"] >= 0
    for _ in range(100):
        cluster.settle()
        cluster.pass_time(0.1)
    registers = {name: len(orjson.dumps(value)) for name, value in cluster.store.registers.items()}
    assert any(name.startswith("run/") for name in registers)
    assert max(registers.values()) <= shape.segments_per_run * limits.segment_bytes(shape)
    assert max(registers.values()) <= shape.register_bytes
    cluster.start("n0")
    found: list[int] = []
    while len(found) < len(sizes):
        polled = ask(cluster, "n0", {"type": "poll", "offsets": {"k": len(found)}})
        found += [len(msg) for _, msg in polled["msgs"]["k"]]
    assert found == sizes


def test_answers_are_bounded_and_go_on_where_they_ended() -> None:
    limits = Limits(answer_bytes=10_000)
    cluster = SteppedCluster(["n0"], "leaderless", LINEARIZABLE._replace(limits=limits))
    keys = ["j", "k", "l"]
    for number in range(60):
        cluster.request("c1", "n0", {"type": "send", "key": keys[number % 3], "msg": "x" * 1_000})
    cluster.finish(every_s=0.02)
    offsets = dict.fromkeys(keys, 0)
    for _ in range(20):
        polled = ask(cluster, "n0", {"type": "poll", "offsets": offsets})
        assert len(orjson.dumps(polled)) <= 2 * limits.answer_bytes
        offsets |= {key: pairs[-1][0] + 1 for key, pairs in polled["msgs"].items()}
    assert offsets == dict.fromkeys(keys, 20)


def test_a_peer_that_lacks_too_much_reads_the_store() -> None:
    entries = [Entry("n9/0", seq, {"k": (seq, ["x" * 400])}, {}) for seq in range(9)]
    store = Store()
    store.apply(Put(HEAD, Head(Heading(version=1, by="n9"), entries).value))
    driver = Driver(store.apply)
    replica = Replica(driver.clock, "n0", [], Limits(answer_bytes=3_000))
    driver.call(replica.refresh())
    assert len(replica.share(6, 0.0).entries) == 3
    assert replica.share(1, 0.0).entries == []
    assert replica.share(1, 0.0).slot == 9


@pytest.mark.parametrize(
    ("kind", "wrong", "text"),
    [
        (Limits, {"lanes": 0}, "lanes must be at least 1, got 0"),
        (Limits, {"batch_bytes": 0}, "batch_bytes must be at least 1, got 0"),
        (Limits, {"client_patience_s": 0.0}, "client_patience_s must be above 0, got 0.0"),
        (Pace, {"rest_every": 0}, "rest_every must be at least 1, got 0"),
        (Pace, {"store_attempts": 0}, "store_attempts must be at least 1, got 0"),
        (Pace, {"store_timeout_s": 0.0}, "store_timeout_s must be above 0, got 0.0"),
        (Pace, {"store_timeout_s": nan}, "store_timeout_s must be above 0, got nan"),
        (Pace, {"lost_deviations": 0}, "lost_deviations must be above 0, got 0"),
        (Pace, {"message_worth_s": -1}, "message_worth_s must be at least 0 and finite, got -1"),
        (Pace, {"message_worth_s": inf}, "message_worth_s must be at least 0 and finite, got inf"),
        (
            Pace,
            {"linger_s_max": 0.1},
            "linger_s_max must be at least 0 and below hedge_s_min (0.08), got 0.1",
        ),
        (
            Pace,
            {"error_pause_s": 2.0},
            "error_pause_max_s must be at least error_pause_s (2.0), got 1.0",
        ),
        (
            Pace,
            {"error_patience_s": 0.001},
            "error_patience_s must be at least error_pause_s (0.01), got 0.001",
        ),
        (Shape, {"seal_bytes": 0}, "seal_bytes must be a whole number of at least 1, got 0"),
        (Shape, {"seal_bytes": "8"}, "seal_bytes must be a whole number of at least 1, got '8'"),
        (Shape, {"segments_per_run": 1}, "segments_per_run must be at least 2, got 1"),
        (Shape, {"page_children": 1}, "page_children must be at least 2, got 1"),
        (Shape, {"offset_registers": 65537}, "offset_registers must be at most 65536, got 65537"),
        (
            Shape,
            {"run_bytes": 1 << 26},
            "run_bytes must be below register_bytes (67108864), got 67108864",
        ),
        (
            Shape,
            {"page_bytes": 1 << 26},
            "page_bytes must be at most a 64th of register_bytes (1048576), got 67108864",
        ),
        (Shape, {"runs": "csv"}, "runs must be json or parquet, got 'csv'"),
    ],
)
def test_an_error_says_field_bound_and_value(
    kind: Callable[..., object], wrong: dict[str, object], text: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        kind(**wrong)


SMALL = Shape(register_bytes=1 << 20, run_bytes=1 << 19, page_bytes=1 << 13)


@pytest.mark.parametrize(
    ("limits", "shape", "text"),
    [
        (Limits(message_bytes=1 << 25), Shape(), "a segment must be at most 33554432 bytes"),
        (Limits(line_bytes=1), Shape(), "line_bytes must be at least register_bytes of the log"),
        (Limits(), SMALL, "lower message_bytes (1048576) or batch_bytes (32768)"),
    ],
)
def test_who_cannot_share_a_log_says_so(limits: Limits, shape: Shape, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        limits.require_fit(shape)


def test_a_message_without_room_in_the_registers_of_the_log_is_refused() -> None:
    """The node that made the log has small registers; another one takes messages of a mebibyte."""
    small = Shape(register_bytes=1 << 20, run_bytes=1 << 19, page_bytes=1 << 10)
    founder = LINEARIZABLE._replace(limits=Limits().fitted(small), shape=small)
    store = SteppedCluster(["n0"], "leaderless", founder)
    assert ask(store, "n0", {"type": "send", "key": "k", "msg": 1})["offset"] == 0
    cluster = SteppedCluster(["n1"], "leaderless", LINEARIZABLE, store=store.store)
    told = ask(cluster, "n1", {"type": "send", "key": "k", "msg": "x" * 500_000})
    assert (told["type"], told["code"]) == ("error", 12)
    assert ask(cluster, "n1", {"type": "send", "key": "k", "msg": "x" * 50_000})["offset"] == 1
