"""What comes in from the store and from peers is checked once, at the edge; nothing raises out of a step."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.core.coordination import Misfit
from leaderless.core.headlog.index import (
    Index,
    IndexEntry,
    decode_part,
    distribute,
    index_of,
    new_page,
)
from leaderless.core.headlog.records import (
    Head,
    Segment,
    head_of,
    merge,
    segment_of,
    value_of_heading,
)
from leaderless.core.messages import Entry, Heading
from leaderless.core.shape import Shape
from leaderless.runtime.session import Session
from leaderless.wire.bodies import answer_of
from simulation.nodes import LINEARIZABLE, new_session
from tests.fakes import LinKv

ENTRIES = [
    Entry("n0.i/0", 1, {"k": (0, ["a", None])}, {}),
    Entry("n1.i/0", 1, {"k": (2, [{"x": 1}]), "j": (0, [2])}, {"k": 1}),
]
SEGMENT = Segment(0, ENTRIES)
HEAD = Head(Heading(version=3, by="n1", size=9), ENTRIES)
RUN = merge([SEGMENT])
LISTED = IndexEntry(0, 0, 15, 0, 2, 1, 60)
INDEX = Index(2, 16, (LISTED,))
PAGE = new_page([LISTED])
distribute(RUN, 0, {0: PAGE}, 1)
RECORDS: list[tuple[Callable[..., Any], Any]] = [
    (head_of, HEAD),
    (segment_of, SEGMENT),
    (decode_part, RUN),
    (decode_part, PAGE),
    (index_of, INDEX),
]
JUNK: list[Any] = [None, True, -1, 1.5, "x", [], {}, [None], {"k": None}, [[[[]]]]]


def json_of(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


def broken(value: Any) -> list[Any]:
    """The value with one part of it replaced by junk, or left out, at every place."""
    found: list[Any] = []
    if isinstance(value, dict):
        found += [{name: each for name, each in value.items() if name != gone} for gone in value]
        found += [value | {name: part} for name in value for part in broken(value[name])]
    elif isinstance(value, list):
        for place, each in enumerate(value):
            found += [[*value[:place], part, *value[place + 1 :]] for part in broken(each)]
    return [*found, *JUNK]


@pytest.mark.parametrize(("decode", "record"), RECORDS)
def test_what_was_written_is_read(decode: Any, record: Any) -> None:
    assert decode(json_of(record.value)) == record


@pytest.mark.parametrize(("decode", "record"), RECORDS)
def test_a_decoder_takes_a_record_or_raises_misfit(decode: Any, record: Any) -> None:
    refused = 0
    for value in broken(json_of(record.value)):
        try:
            decoded = decode(value)
        except Misfit:
            refused += 1
        else:
            assert decoded is None or json_of(decoded.value).keys() <= value.keys()
    assert refused > len(JUNK)


@pytest.mark.parametrize("version", [1, 3])
def test_an_index_of_another_format_is_refused(version: int) -> None:
    with pytest.raises(Misfit, match=f"index of format {version}, and this version knows 4"):
        index_of({**(INDEX.value or {}), "format": version})


# ---------------------------------------------------------------- strangers

BATCH = {
    "type": "hand_over",
    "slot": 0,
    "writer": "n0.i1/0",
    "seq": 1,
    "epoch": 0,
    "appends": {"k": ["forged"]},
    "commits": {},
}


# ---------------------------------------------------------------- a fuzz test

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 99)
    | st.floats(allow_nan=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("kj"), inner),
    max_leaves=6,
)
NEAR = st.sampled_from([part for _, record in RECORDS for part in broken(json_of(record.value))])
SHOWN = {
    "type": "hand_over_ok",
    "slot": 0,
    "entries": json_of([entry.value for entry in ENTRIES]),
    "head": HEAD.heading._asdict(),
    "held_s": 0.1,
}
ANSWERS = st.one_of(
    st.fixed_dictionaries({"type": st.just("read_ok"), "value": NEAR | JSON}),
    st.sampled_from([body for body in broken(SHOWN) if isinstance(body, dict) and "type" in body]),
    st.fixed_dictionaries({"type": st.just("error"), "code": st.integers(0, 40) | JSON}),
    st.sampled_from([{"type": "cas_ok"}, {"type": "write_ok"}, {"type": "read_ok"}]),
)
ASKED = st.sampled_from(
    [
        {"type": "send", "key": "k", "msg": 1},
        {"type": "poll", "offsets": {"k": 0}},
        {"type": "commit_offsets", "offsets": {"k": 1}},
        {"type": "list_committed_offsets", "keys": ["k"]},
        {"type": "fence"},
        {**BATCH, "writer": "n1.i2/0"},
    ]
)


def feed(session: Session, src: str, body: Any, now: float) -> list[Any]:
    if type(body.get("type")) is str:
        session.receive(orjson.dumps({"src": src, "dest": "n0", "body": body}), now)
    if session.deadline is not None and session.deadline <= now:
        session.pass_time(now)
    return [orjson.loads(line) for line in session.take().splitlines()]


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(["c1", "n1"]), ASKED, ANSWERS), max_size=14))
def test_nothing_raises_whatever_is_answered(acts: list[tuple[str, Any, Any]]) -> None:
    """Each call is answered by anything; afterwards a sound store is served as if nothing had been."""
    session = new_session("leaderless", options=LINEARIZABLE, strict=False)
    waiting = feed(
        session, "c0", {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0", "n1"]}, 0
    )
    now = 0.0
    for number, (src, asked, answer) in enumerate(acts, 2):
        now += 0.4
        waiting += feed(session, src, {**asked, "msg_id": number}, now)
        calls = [message for message in waiting if "msg_id" in message["body"]]
        if calls:
            waiting.remove(calls[0])
            reply = {**answer, "in_reply_to": calls[0]["body"]["msg_id"]}
            waiting += feed(session, calls[0]["dest"], reply, now)
    waiting += feed(session, "c9", {"type": "list_committed_offsets", "msg_id": 0, "keys": []}, now)
    store = LinKv()
    for _ in range(400):
        for message in [each for each in waiting if each["dest"] == "lin-kv"]:
            waiting.remove(message)
            waiting += feed(session, "lin-kv", store.handle(message["body"]), now)
        now += 0.1
        waiting += feed(session, "c0", {}, now)
    assert [m for m in waiting if m["dest"] == "c9"], "it never answers again"


@pytest.mark.parametrize(
    "wrong",
    [{"version": "9"}, {"base": None}, {"state": "ajar"}, {"shape": [1, 2]}, {"shape": "large"}],
)
def test_a_head_that_makes_no_sense_is_no_answer_of_a_peer(wrong: dict[str, Any]) -> None:
    heading = Heading(version=1, by="n1", shape=Shape())
    body = {"type": "hand_over_ok", "slot": 0, "entries": [], "held_s": 0.0}
    assert answer_of(body | {"head": value_of_heading(heading)}) is not None
    assert answer_of(body | {"head": value_of_heading(heading) | wrong}) is None
