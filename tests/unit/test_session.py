"""A conversation with a node, line by line."""

import logging
from typing import Any

import orjson
import pytest

from leaderless.core.coordination import InvariantBroken, failure_of
from leaderless.core.limits import Limits
from leaderless.core.messages import Failure, Reason
from leaderless.core.pace import Pace
from leaderless.runtime.session import Session
from leaderless.wire.bodies import ErrorCode
from simulation.nodes import new_session

INIT = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0", "n1"]}


def tell(session: Session, body: Any, src: str = "c1", now: float = 0.0) -> list[dict[str, Any]]:
    session.receive(orjson.dumps({"src": src, "dest": "n0", "body": body}), now)
    return [orjson.loads(line) for line in session.take().splitlines()]


@pytest.fixture
def session() -> Session:
    session = new_session("cas")
    tell(session, INIT)
    return session


def error_of(messages: list[dict[str, Any]]) -> tuple[int, str]:
    [message] = messages
    assert message["body"]["type"] == "error"
    return message["body"]["code"], message["body"]["text"]


def test_init() -> None:
    assert tell(new_session("cas"), INIT, src="c0") == [
        {"src": "n0", "dest": "c0", "body": {"type": "init_ok", "in_reply_to": 1}}
    ]


@pytest.mark.parametrize("kind", ["poll", "nonsense"])
def test_before_init(kind: str) -> None:
    [message] = tell(new_session("cas"), {"type": kind, "msg_id": 1, "offsets": {}})
    assert error_of([message]) == (11, "not initialised: send init first")
    assert (message["src"], message["dest"]) == ("n0", "c1")


def test_what_is_too_large_before_init_is_refused_in_the_nodes_own_name() -> None:
    """The name was still empty, which is no name in the network, and the node became mute."""
    large = "x" * 2 * Limits().message_bytes
    [message] = tell(new_session("cas"), {"type": "send", "msg_id": 1, "key": "k", "msg": large})
    assert error_of([message])[0] == ErrorCode.MALFORMED_REQUEST
    assert message["src"] == "n0"


def test_a_broken_init_is_refused_and_a_good_one_still_works() -> None:
    session = new_session("cas")
    code, text = error_of(tell(session, {**INIT, "node_ids": ["n0", 1]}))
    assert code == ErrorCode.MALFORMED_REQUEST
    assert "'node_ids'" in text
    assert tell(session, INIT)[0]["body"]["type"] == "init_ok"


def test_the_same_init_again_is_answered_and_changes_nothing(session: Session) -> None:
    [call] = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
    assert tell(session, {**INIT, "msg_id": 3})[0]["body"] == {"type": "init_ok", "in_reply_to": 3}
    reply = {"type": "cas_ok", "in_reply_to": call["body"]["msg_id"]}
    [answer] = tell(session, reply, src="lin-kv")
    assert answer["body"] == {"type": "send_ok", "offset": 0, "in_reply_to": 2}


def test_another_init_is_refused(session: Session) -> None:
    code, text = error_of(tell(session, {**INIT, "node_id": "n1"}))
    assert code == ErrorCode.ABORT
    assert "this node is 'n0' already" in text


def test_unknown_type(session: Session) -> None:
    code, text = error_of(tell(session, {"type": "txn", "msg_id": 2}))
    assert code == ErrorCode.NOT_SUPPORTED
    assert "'txn'" in text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"type": "send", "msg": 1}, "'key'"),
        ({"type": "send", "key": "k"}, "'msg'"),
        ({"type": "send", "key": 1, "msg": 1}, "'key'"),
        ({"type": "poll"}, "'offsets'"),
        ({"type": "poll", "offsets": []}, "'offsets'"),
        ({"type": "poll", "offsets": {"k": True}}, "'k'"),
        ({"type": "commit_offsets", "offsets": {"k": "1"}}, "'k'"),
        ({"type": "commit_offsets", "offsets": {"k": 1.0}}, "'k'"),
        ({"type": "list_committed_offsets"}, "'keys'"),
        ({"type": "list_committed_offsets", "keys": "k"}, "'keys'"),
        ({"type": "list_committed_offsets", "keys": [1]}, "'keys'"),
    ],
)
def test_missing_or_mistyped_field(session: Session, body: dict[str, Any], field: str) -> None:
    code, text = error_of(tell(session, {**body, "msg_id": 2}))
    assert code == ErrorCode.MALFORMED_REQUEST
    assert field in text


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"src": "c1", "dest": "n0"}',
        b'{"src": "c1", "dest": "n0", "body": []}',
        b'{"src": "c1", "dest": "n0", "body": {"type": 1, "msg_id": 1}}',
        b'{"src": 1, "dest": "n0", "body": {"type": "poll", "msg_id": 1}}',
        b'{"src": "c1", "body": {"type": "poll", "msg_id": 1}}',
        b"\xff\xfe",
    ],
)
def test_malformed_line(session: Session, line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    session.receive(line, 0.0)
    assert session.take() == b""
    assert "line dropped" in caplog.text
    assert tell(session, {"type": "poll", "msg_id": 2, "offsets": {}})


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_blank_line(session: Session, line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    session.receive(line, 0.0)
    assert (session.take(), caplog.text) == (b"", "")


@pytest.mark.parametrize("msg_id", [None, "1", 1.0, True])
def test_without_a_msg_id_nobody_can_be_answered(session: Session, msg_id: Any) -> None:
    assert tell(session, {"type": "send", "key": "k", "msg": 1, "msg_id": msg_id}) == []
    assert tell(session, {"type": "nonsense"}) == []


@pytest.mark.parametrize("in_reply_to", [99, None, "1", True, [[]]])
@pytest.mark.parametrize("src", ["lin-kv", "n1", "c1"])
def test_reply_to_nobody(session: Session, src: str, in_reply_to: Any) -> None:
    assert tell(session, {"type": "cas_ok", "in_reply_to": in_reply_to}, src=src) == []
    assert tell(new_session("cas"), {"type": "cas_ok", "in_reply_to": in_reply_to}, src=src) == []


def test_only_the_store_answers_for_the_store(session: Session) -> None:
    [call] = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
    reply = {"type": "cas_ok", "in_reply_to": call["body"]["msg_id"]}
    assert tell(session, reply, src="n1") == []
    assert tell(session, reply, src="lin-kv")[0]["body"]["type"] == "send_ok"


def test_an_answer_counts_once(session: Session) -> None:
    [call] = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
    reply = {"type": "cas_ok", "in_reply_to": call["body"]["msg_id"]}
    assert len(tell(session, reply, src="lin-kv")) == 1
    assert tell(session, reply, src="lin-kv") == []


def test_a_silent_store_is_indefinite(session: Session) -> None:
    messages = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
    while messages[0]["dest"] == "lin-kv":
        deadline = session.deadline
        assert deadline
        session.pass_time(deadline)
        messages = [orjson.loads(line) for line in session.take().splitlines()]
    code, text = error_of(messages)
    assert not ErrorCode(code).definite
    assert "no clear answer" in text
    assert deadline == 4 * Pace().store_timeout_s
    assert session.deadline is None


@pytest.mark.parametrize("code", [0, 1, 10, 11, 12, 13, 14, 21, 30, 1000, "x", None])
def test_no_error_of_the_store_reaches_a_client(session: Session, code: Any) -> None:
    [call] = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
    reply = {"type": "error", "code": code, "in_reply_to": call["body"]["msg_id"]}
    assert tell(session, reply, src="lin-kv") == []  # it pauses first
    assert session.deadline == pytest.approx(0.01)
    assert session.deadline is not None
    session.pass_time(session.deadline)
    [next_call] = [orjson.loads(line) for line in session.take().splitlines()]
    assert (next_call["dest"], next_call["body"]["type"]) == ("lin-kv", "read")


def test_a_register_that_no_node_wrote_is_an_indefinite_error(session: Session) -> None:
    said = tell(session, {"type": "poll", "msg_id": 2, "offsets": {"k": 0}})
    for _ in range(2):  # the first answer may have been damaged on the way
        [read] = [message["body"] for message in said if message["dest"] == "lin-kv"]
        reply = {"type": "read_ok", "value": 7, "in_reply_to": read["msg_id"]}
        said = tell(session, reply, src="lin-kv")
    code, text = error_of(said)
    assert code == ErrorCode.TIMEOUT
    assert text == "'log/k' could not be read: it holds no log of a key: 7"


def test_a_request_that_breaks_an_invariant_may_have_happened() -> None:
    broken = failure_of(InvariantBroken("ViewIsPrefix: slot 4 after 3"))
    assert broken == Failure(Reason.CRASH, "InvariantBroken: ViewIsPrefix: slot 4 after 3")


def test_refusals_are_logged(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tell(session, {"type": "txn", "msg_id": 2})
    assert "refused" in caplog.text


def test_calls_of_another_start_are_not_this_ones() -> None:
    """An answer meant for the start before must not be taken for an answer to this one."""
    sessions = [new_session("cas", incarnation) for incarnation in (1, 2)]
    calls = []
    for session in sessions:
        tell(session, INIT)
        [call] = tell(session, {"type": "send", "msg_id": 2, "key": "k", "msg": 1})
        calls.append(call["body"]["msg_id"])
    assert tell(sessions[1], {"type": "cas_ok", "in_reply_to": calls[0]}, src="lin-kv") == []


TOO_LARGE = {"type": "send", "msg_id": 7, "key": "k", "msg": "x" * (2 << 20)}


@pytest.mark.parametrize(
    "line",
    [
        orjson.dumps({"src": "c1", "dest": "n0", "body": TOO_LARGE}),
        b'{"src":"c1","dest":"n0","body":{"type":"send","msg_id":7,"key":"k","msg":36893488147419103233}}',
        b'{"src":"c1","dest":"n0","body":{"type":"send","msg_id":7,"key":1,"msg":1}}',
        b'{"src":"c1","dest":"n0","body":{"type":"nonsense","msg_id":7}}',
    ],
    ids=["too large", "cannot be kept", "malformed", "not supported"],
)
def test_a_refusal_does_not_reach_a_client_that_is_gone(session: Session, line: bytes) -> None:
    """The node stood still while the line lay in its pipe. Seed 11438 of the simulator."""
    session.receive(line, 10.0, arrived_at=4.0)
    assert session.take() == b""
    session.receive(line, 10.0, arrived_at=6.0)
    assert b'"error"' in session.take()
