"""Whatever comes in, the node lives, speaks only messages, and never claims to know what it cannot know."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderless.core import strategies
from leaderless.runtime.session import Session
from leaderless.runtime.stdio import LineSplitter
from simulation.nodes import LINEARIZABLE, new_session
from tests.fakes import LinKv
from tests.property.odd import JSON
from tests.unit.test_edges import ENTRIES, HEAD, RECORDS, broken, json_of

KINDS = ["send", "poll", "commit_offsets", "list_committed_offsets"]
STRATEGIES = pytest.mark.parametrize("strategy", sorted(strategies.STRATEGIES))

KEYS = st.sampled_from(["j", "k"])
BODIES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [*KINDS, "init", "hand_over", "fence", "unfence", "share", "read_ok", "nonsense"]
        )
    },
    optional={
        "msg_id": st.integers(-1, 2**53) | JSON,
        "key": KEYS | JSON,
        "msg": JSON,
        "offsets": st.dictionaries(KEYS, st.integers(-2, 5)) | JSON,
        "keys": st.lists(KEYS) | JSON,
        "node_id": st.just("n0") | JSON,
        "node_ids": st.just(["n0"]) | JSON,
        "slot": st.integers(-1, 3) | JSON,
        "seq": st.integers(-1, 3) | JSON,
        "epoch": st.integers(-1, 3) | JSON,
        "writer": st.just("n1.i1") | JSON,
        "appends": st.dictionaries(KEYS, st.lists(JSON, max_size=2)) | JSON,
        "commits": st.dictionaries(KEYS, st.integers(-2, 5)) | JSON,
        "msgs": st.dictionaries(KEYS, st.lists(st.tuples(st.integers(-2, 5), JSON))) | JSON,
    },
)
# What a store or a peer answers: in_reply_to is filled in with calls that the node made, or is anything.
ANSWERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["read_ok", "cas_ok", "write_ok", "error", "hand_over_ok", "x"])},
    optional={
        "value": JSON,
        "code": st.sampled_from([0, 11, 13, 20, 22, 1000]) | JSON,
        "slot": JSON,
    },
)
# What a peer answers to a batch.
SHOWN = {
    "type": "hand_over_ok",
    "slot": 0,
    "entries": json_of([entry.value for entry in ENTRIES]),
    "head": HEAD.heading._asdict(),
    "held_s": 0.1,
}
NEAR = [part for _, record in RECORDS for part in broken(json_of(record.value))]
NEAR_ANSWERS = (
    ANSWERS
    | st.fixed_dictionaries({"type": st.just("read_ok"), "value": st.sampled_from(NEAR)})
    | st.sampled_from([each for each in broken(SHOWN) if isinstance(each, dict) and "type" in each])
)
SOURCES = st.sampled_from(["c1", "c2", "n1"])


def feed(session: Session, src: Any, body: Any, now: float = 0.0) -> list[dict[str, Any]]:
    """What a session answers to one message, checked to be messages."""
    return feed_line(session, orjson.dumps({"src": src, "dest": "n0", "body": body}), now)


def feed_line(session: Session, line: bytes, now: float = 0.0) -> list[dict[str, Any]]:
    session.receive(line, now)
    return written(session)


def written(session: Session) -> list[dict[str, Any]]:
    out = session.take()
    assert not out or out.endswith(b"\n")
    messages = [orjson.loads(line) for line in out.splitlines()]
    for message in messages:
        assert set(message) == {"src", "dest", "body"}, message
        assert type(message["src"]) is type(message["dest"]) is str, message
        assert type(message["body"]["type"]) is str, message
        is_one_way = message["body"]["type"] == "share"
        assert is_one_way or {"msg_id", "in_reply_to"} & set(message["body"]), message
    return messages


def initialised(strategy: str, strict: bool = True) -> Session:
    session = new_session(strategy, options=LINEARIZABLE, strict=strict)
    body = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0", "n1"]}
    [reply] = feed(session, "c0", body)
    assert reply["body"] == {"type": "init_ok", "in_reply_to": 1}
    return session


def serve_store(session: Session, messages: list[Any], now: float = 0.0) -> list[dict[str, Any]]:
    """Answer store calls until there are none, and let time pass; returns what else was said."""
    store, said, waiting = LinKv(), [], list(messages)
    for _ in range(500):
        while waiting:
            message = waiting.pop(0)
            if message["dest"] == "lin-kv":
                waiting += feed(session, "lin-kv", store.handle(message["body"]), now)
            else:
                said.append(message)
        if session.deadline is None:
            return said
        now = max(now, session.deadline)
        session.pass_time(now)
        waiting += written(session)
    raise AssertionError("the node never comes to rest")


def still_serves(session: Session, now: float) -> None:
    # Nothing is known of the store here but that it answers: the last words must be an answer.
    said = serve_store(
        session, feed(session, "c9", {"type": "poll", "msg_id": 9, "offsets": {}}, now), now
    )
    assert any(message["dest"] == "c9" for message in said)


@given(st.binary(max_size=40))
def test_any_bytes(line: bytes) -> None:
    for session in (new_session("cas"), initialised("cas")):
        assert feed_line(session, line) == []
        assert feed(session, "c1", {"type": "nonsense", "msg_id": 7})


@given(JSON, JSON, JSON)
def test_any_json(src: Any, dest: Any, body: Any) -> None:
    session = initialised("cas")
    for message in (body, {"src": src, "dest": dest, "body": body}, {"src": "c1", "body": body}):
        assert feed_line(session, orjson.dumps(message)) == []
    still_serves(session, 0.0)


@pytest.mark.parametrize(
    "name", ["key", "msg", "offsets", "keys", "type", "msg_id", "in_reply_to", "node_id"]
)
@pytest.mark.parametrize("depth", [200, 250, 1_000])
@STRATEGIES
def test_deep_values(strategy: str, name: str, depth: int) -> None:
    deep = b"[" * depth + b"1e300" + b"]" * depth
    for kind in [*KINDS, "init", "hand_over", "share"]:
        session = initialised(strategy)
        body = {
            "type": kind,
            "msg_id": 5,
            "key": "k",
            "msg": 1,
            "offsets": {},
            "keys": [],
            "msgs": {"k": [[0, "HERE" if name == "msg" else 1]]},
            name: "HERE",
        }
        line = orjson.dumps({"src": "c1", "dest": "n0", "body": body}).replace(b'"HERE"', deep)
        said = serve_store(session, feed_line(session, line))
        assert len([message for message in said if message["dest"] == "c1"]) <= 1
        still_serves(session, 10.0)


# All strategies share what is drawn: drawing takes longer than the nodes do.
@given(st.lists(st.tuples(SOURCES, BODIES), max_size=12))
def test_near_messages(messages: list[tuple[str, dict[str, Any]]]) -> None:
    asked = [
        (src, body["msg_id"])
        for src, body in messages
        if type(body.get("msg_id")) is int and body["type"] != "share"
    ]
    for strategy in strategies.STRATEGIES:
        session = initialised(strategy)
        said = [message for src, body in messages for message in feed(session, src, body)]
        replies = serve_store(session, said)
        answered = [
            (message["dest"], message["body"]["in_reply_to"])
            for message in replies
            if "in_reply_to" in message["body"]
        ]
        assert sorted(answered) == sorted(asked), strategy


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(["lin-kv", "lin-kv", "n1"]), NEAR_ANSWERS), max_size=12),
)
def test_a_lying_store(kinds: list[str], answers: list[tuple[str, dict[str, Any]]]) -> None:
    """Answers of any shape to calls that were made: the node lives and says nothing definite."""
    for strategy in ("leaderless", "cas", "prefetch", "prefetch-sealed"):
        session, waiting = initialised(strategy, strict=False), []
        valid = {"key": "k", "msg": 1, "offsets": {"k": 0}, "keys": ["k"]}
        for number, kind in enumerate(kinds):
            waiting += feed(session, "c1", {"type": kind, "msg_id": number, **valid})
        for now, (src, answer) in enumerate(answers):
            calls = [message for message in waiting if "msg_id" in message["body"]]
            if calls:
                waiting.remove(calls[0])
                reply = {**answer, "in_reply_to": calls[0]["body"]["msg_id"]}
                waiting += feed(session, src, reply, now / 100)
            if session.deadline is not None and session.deadline <= now / 100:
                session.pass_time(now / 100)
                waiting += written(session)
        said = [message["body"] for message in waiting if message["dest"] == "c1"]
        answered = [body["in_reply_to"] for body in said]
        assert len(set(answered)) == len(answered), strategy
        errors = [body["code"] for body in said if body["type"] == "error"]
        assert set(errors) <= {0, 13}, strategy


@given(
    st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(1, 9), max_size=20),
)
def test_lines_do_not_depend_on_chunks(lines: list[bytes], sizes: list[int]) -> None:
    data, splitter, found = b"".join(line + b"\n" for line in lines) + b"rest", LineSplitter(), []
    for size in [*sizes, len(data)]:
        found += splitter.feed(data[:size]) if data else []
        data = data[size:]
    assert found == lines


@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 20))
def test_long_lines_are_left_out(lengths: list[int], chunk_bytes: int) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    splitter = LineSplitter(line_bytes_max=8)
    chunks = [data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes)]
    found = [len(line) for chunk in chunks for line in splitter.feed(chunk)]
    assert found == [length for length in lengths if length <= 8]
