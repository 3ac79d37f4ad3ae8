"""Lines, messages and bodies of the kafka workload; tests/datadriven/conversations has what is malformed."""

from typing import Any

import pytest

from leaderless.core.messages import (
    CommitOffsetsOk,
    Failure,
    ListCommittedOffsetsOk,
    PollOk,
    Reason,
    Request,
    SendOk,
)
from leaderless.wire.bodies import ErrorCode, body_of
from leaderless.wire.codec import BadLine, decode


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 2_000 + b"]" * 2_000, "not JSON"),
        (b"1", "needs strings"),
        (b'{"src": "a", "dest": "b", "body": "c"}', "needs strings"),
        (b'{"src": "a", "dest": "b", "body": {}}', "needs strings"),
        (b'{"src": null, "dest": "b", "body": {"type": "x"}}', "needs strings"),
    ],
)
def test_a_bad_line_says_why_and_quotes_no_more_than_its_beginning(
    line: bytes, complaint: str
) -> None:
    with pytest.raises(BadLine, match=complaint) as bad:
        decode(line)
    assert len(str(bad.value)) < 400


# ---------------------------------------------------------------- bodies


REQUEST = Request("c1", 1)


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


def test_definite_errors() -> None:
    assert {code for code in ErrorCode if not code.definite} == {ErrorCode.TIMEOUT, ErrorCode.CRASH}
