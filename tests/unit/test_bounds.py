"""No register outgrows its bound in bytes, whatever is sent; what is larger than the bound still works."""

from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.core.limits import Limits
from leaderless.core.shape import Shape
from leaderless.core.strategy import Options
from tests.stepped import SteppedCluster

# As the real limits to each other, only smaller.
SEAL_BYTES, BATCH_BYTES = 512, 2_048
COMMIT_BYTES = Limits(batch_bytes=BATCH_BYTES).commit_bytes
SEGMENTS_PER_RUN = 4
# A full tail got its last commit while it was just not full.
TAIL_BYTES = SEAL_BYTES + COMMIT_BYTES + BATCH_BYTES
NAMES_BYTES = 512  # the fields of a register around its entries


SMALL = Options(
    freshness_s=0.0,
    limits=Limits(batch_bytes=BATCH_BYTES),
    shape=Shape(seal_bytes=SEAL_BYTES, segments_per_run=SEGMENTS_PER_RUN),
)


def longest(value: Any, seen: int = 0) -> int:
    """The bytes of the longest string in a value."""
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((longest(part) for part in parts), default=0)


def require_bounded(cluster: SteppedCluster, message_bytes: int) -> None:
    for register, value in cluster.store.registers.items():
        size = len(orjson.dumps(value))
        bound = TAIL_BYTES + message_bytes + NAMES_BYTES
        if register.startswith("run/"):
            bound *= SEGMENTS_PER_RUN
        assert size <= bound, f"{register}: {size} bytes"


SENDS = st.lists(
    st.tuples(
        st.one_of(
            st.text(max_size=3), st.integers(0, 99).map(lambda at: f"a rather long key {at}")
        ),
        st.one_of(
            st.integers(-(2**53), 2**53),
            st.text(max_size=20),
            st.integers(0, 5_000).map(lambda size: "x" * size),
            st.lists(st.none(), max_size=30),
        ),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=40)
@given(SENDS)
def test_no_register_outgrows_its_bound(sends: list[tuple[str, Any, int]]) -> None:
    cluster = SteppedCluster(["n0", "n1"], "leaderless", SMALL)
    sent: dict[str, int] = {}
    for place, (key, msg, times) in enumerate(sends):
        for _ in range(times):
            cluster.request("c1", f"n{place % 2}", {"type": "send", "key": key, "msg": msg})
            sent[key] = sent.get(key, 0) + 1
        if place % 3 == 0:
            cluster.settle()
    cluster.finish(every_s=0.02)
    require_bounded(cluster, max(longest(msg) for _, msg, _ in sends))
    acked = [reply for reply in cluster.to_clients if reply.body["type"] == "send_ok"]
    assert len(acked) == sum(sent.values())


def test_committed_offsets_of_many_keys_count_too() -> None:
    cluster = SteppedCluster(["n0"], "leaderless", SMALL._replace(durable_commits=False))
    for round_ in range(20):
        offsets = {f"a rather long key {at}": round_ for at in range(1_000)}
        cluster.request("c1", "n0", {"type": "commit_offsets", "offsets": offsets})
        cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": round_})
        cluster.finish(every_s=0.02)
    require_bounded(cluster, message_bytes=2 * len(orjson.dumps(offsets)))


def test_what_cannot_wait_is_refused() -> None:
    limits = replace(SMALL.limits, waiting_bytes=1_000)
    cluster = SteppedCluster(["n0"], "leaderless", SMALL._replace(limits=limits))
    for _ in range(4):
        cluster.request("c1", "n0", {"type": "send", "key": "k", "msg": "x" * 600})
    refused = [reply.body for reply in cluster.to_clients if reply.body["type"] == "error"]
    assert {body["code"] for body in refused} == {11}
    cluster.finish(every_s=0.02)
    acked = [reply for reply in cluster.to_clients if reply.body["type"] == "send_ok"]
    assert len(acked) + len(refused) == 4
    assert acked
