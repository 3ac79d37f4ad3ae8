"""What becomes of requests to a real store: pure draws under the faults in force."""

from random import Random

import h11
import pytest

from bench.nemesis.store_faults import SHARES, WAITS_NS, StoreFault
from bench.stores.damage import Bodies, Damage, Whole, damaged
from bench.stores.fates import LINK, MODES_OF_PROXY, End, Fate, Fates
from bench.stores.statistics import RequestStatistics, kind_of

MS = 1_000_000


class Ways:
    """Links whose latency is 3 ms to the store and 4 ms back; `lost` is an end whose messages get lost."""

    def __init__(self, lost: str = "") -> None:
        self._lost = lost

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None:
        if src == self._lost and not spared:
            return None
        return 3 * MS if dest == LINK else 4 * MS


def fates(mode: str = "", share: float = 1.0, lost: str = "", count: int = 200) -> list[Fate]:
    """The fates of requests of n0 while a fault is in force."""
    made = Fates(Ways(lost), Random(1))
    if mode:
        made.in_force = StoreFault(frozenset(["n0"]), mode, share)
        assert made.of("n1") == Fate(3 * MS, back_ns=4 * MS)
        assert made.of("n0", spared=True) == Fate(3 * MS, back_ns=4 * MS)
    return [made.of("n0") for _ in range(count)]


def test_without_a_fault_a_request_takes_both_ways() -> None:
    assert set(fates()) == {Fate(3 * MS, back_ns=4 * MS)}


@pytest.mark.parametrize("mode", WAITS_NS)
def test_a_late_request_waits_before_it_is_applied_or_its_answer_waits(mode: str) -> None:
    found = fates(mode)
    shortest, longest = WAITS_NS[mode]
    assert all(shortest <= f.there_ns + f.back_ns - 7 * MS <= longest for f in found)
    assert all(f.applied and f.end is End.ANSWERED for f in found)
    before = [f for f in found if f.back_ns == 4 * MS]
    after = [f for f in found if f.there_ns == 3 * MS]
    assert len(before) + len(after) == 200
    assert min(len(before), len(after)) > 50


@pytest.mark.parametrize(
    ("mode", "applied", "end"),
    [
        ("lost", True, End.RESET),
        ("reset", False, End.RESET),
        ("refused", False, End.RESET),
        ("throttled", False, End.THROTTLED),
        ("dripping", True, End.DRIPPING),
        ("damaged", True, End.DAMAGED),
    ],
)
def test_whether_a_request_is_applied_and_what_its_node_sees(
    mode: str, applied: bool, end: End
) -> None:
    assert {(f.applied, f.end, f.mode) for f in fates(mode)} == {(applied, end, mode)}


def test_answers_are_damaged_in_every_way() -> None:
    assert {fate.damage for fate in fates("damaged")} == {*Damage}


def answer(body: bytes, status: int = 200) -> Whole:
    headers = [("content-length", str(len(body))), ("ETag", '"x"')]
    return Whole(h11.Response(status_code=status, headers=headers, reason=b"OK"), body)


@pytest.mark.parametrize(
    ("damage", "body"),
    [
        (Damage.HALF, b"01234"),
        (Damage.EMPTY, b""),
        (Damage.GARBAGE, b"\xff" * 10),
        (Damage.OTHER, b"another"),
    ],
)
def test_a_damaged_answer_looks_whole(damage: Damage, body: bytes) -> None:
    found = damaged(answer(b"0123456789"), damage, b"another")
    assert found.body == body
    assert dict(found.head.headers)[b"content-length"] == str(len(body)).encode()
    written = damaged(answer(b""), damage, None)
    assert dict(written.head.headers) == {b"content-length": b"0"}  # no ETag
    refused = answer(b"<Error/>", 412)
    assert damaged(refused, damage, None) == refused


def test_the_body_of_another_object_is_of_another_kind() -> None:
    bodies = Bodies()
    bodies.note("GET", "/b/run/segment/1", answer(b"segment"))
    bodies.note("GET", "/b/run/none", answer(b"<Error/>", 404))
    bodies.note("PUT", "/b/run/head", answer(b"put"))
    assert bodies.other_than("GET", "/b/run/segment/2") is None
    assert bodies.other_than("GET", "/b/run/head") == b"segment"
    assert bodies.other_than("LIST", "/b?list-type=2") == b"segment"
    assert bodies.other_than("kv/txn", "/v3/kv/txn") is None


@pytest.mark.parametrize("mode", MODES_OF_PROXY)
def test_a_share_of_the_requests_is_affected(mode: str) -> None:
    assert set(MODES_OF_PROXY[mode]) <= set(SHARES)
    affected = [f for f in fates(mode, share=0.3) if f.mode]
    assert 30 < len(affected) < 90


def test_a_request_that_gets_lost_is_not_applied_and_one_whose_answer_does_is() -> None:
    assert {(f.applied, f.end) for f in fates(lost="n0")} == {(False, End.SILENT)}
    assert {(f.applied, f.end) for f in fates(lost=LINK)} == {(True, End.SILENT)}


@pytest.mark.parametrize(
    ("method", "target", "kind"),
    [
        ("PUT", "/bucket/run/head", "PUT"),
        ("GET", "/bucket/run/head", "GET"),
        ("GET", "/bucket?list-type=2&prefix=run", "LIST"),
        ("POST", "/v3/kv/txn", "kv/txn"),
    ],
)
def test_kinds_of_requests(method: str, target: str, kind: str) -> None:
    assert kind_of(method, target) == kind


def test_requests_count_from_the_main_phase_on() -> None:
    counted = RequestStatistics()
    counted.asked("PUT", "/b/probe", 10, None)
    counted.answered(200, 5)
    counted.begin()
    counted.asked("PUT", "/b/head", 100, "lost")
    assert (counted.at_start, counted.count, counted.sent_bytes) == (1, 1, 100)
    assert (dict(counted.by_fault), dict(counted.by_status)) == ({"lost": 1}, {})
