"""The kafka workload's bodies; what is malformed is in test_session.py."""

from typing import Any

import pytest

from leaderless.core.messages import (
    CommitOffsets,
    CommitOffsetsOk,
    Failure,
    ListCommittedOffsets,
    ListCommittedOffsetsOk,
    Poll,
    PollOk,
    Reason,
    Request,
    Send,
    SendOk,
)
from leaderless.wire.bodies import MalformedRequest, body_of, parse
from leaderless.wire.errors import ErrorCode

REQUEST = Request("c1", 1)


@pytest.mark.parametrize(
    ("body", "event"),
    [
        ({"type": "send", "key": "k", "msg": [1]}, Send(REQUEST, "k", [1], 9)),
        ({"type": "send", "key": "k", "msg": None}, Send(REQUEST, "k", None, 9)),
        ({"type": "poll", "offsets": {"k": 1}}, Poll(REQUEST, {"k": 1})),
        ({"type": "commit_offsets", "offsets": {}}, CommitOffsets(REQUEST, {})),
        ({"type": "list_committed_offsets", "keys": ["k"]}, ListCommittedOffsets(REQUEST, ["k"])),
    ],
)
def test_parse(body: dict[str, Any], event: Any) -> None:
    assert parse(REQUEST, body, 9) == event


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (SendOk(3), {"type": "send_ok", "offset": 3}),
        (PollOk({"k": [[1, "x"]]}), {"type": "poll_ok", "msgs": {"k": [[1, "x"]]}}),
        (CommitOffsetsOk(), {"type": "commit_offsets_ok"}),
        (
            ListCommittedOffsetsOk({"k": 2}),
            {"type": "list_committed_offsets_ok", "offsets": {"k": 2}},
        ),
        (Failure(Reason.TIMEOUT, "why"), {"type": "error", "code": 0, "text": "why"}),
        (Failure(Reason.FENCED, "why"), {"type": "error", "code": 11, "text": "why"}),
    ],
)
def test_body_of(answer: Any, body: dict[str, Any]) -> None:
    assert body_of(answer) == body


def test_a_message_that_could_be_read_but_not_stored_is_refused() -> None:
    msg: list[Any] = []
    for _ in range(240):
        msg = [msg]
    with pytest.raises(MalformedRequest, match="cannot be stored"):
        parse(REQUEST, {"type": "send", "key": "k", "msg": msg})


def test_definite_errors() -> None:
    assert {code for code in ErrorCode if not code.definite} == {ErrorCode.TIMEOUT, ErrorCode.CRASH}
