"""Lines and messages."""

import orjson
import pytest

from leaderless.wire.codec import BadLine, decode, encode


def test_decode() -> None:
    message = decode(b'{"id": 3, "src": "c1", "dest": "n0", "body": {"type": "x", "msg_id": 1}}')
    assert message == ("c1", "n0", {"type": "x", "msg_id": 1})


def test_encode() -> None:
    line = encode("n0", "c1", {"type": "x", "text": "ü\n"})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert orjson.loads(line) == {"src": "n0", "dest": "c1", "body": {"type": "x", "text": "ü\n"}}


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
