"""No node can break the bench: whatever it prints is routed, answered, or reported."""

import io
from collections.abc import Generator
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.failure import RunFailure
from bench.loop import VirtualLoop
from bench.net import Network
from bench.services import connect, default_services
from runs.history import Op
from runs.writing import Journal
from tests.property.odd import JSON
from workloads.interface import MalformedReply, error_of
from workloads.kafka.client import KafkaClient

names = st.sampled_from(["n0", "n1", "c0", "lin-kv", "seq-kv", "lww-kv", "lin-tso", "n9", ""])
request_types = st.sampled_from(["read", "write", "cas", "ts", "init", "error"]) | JSON
bodies = st.fixed_dictionaries(
    {},
    optional={
        "type": request_types,
        "msg_id": JSON,
        "in_reply_to": JSON,
        "key": JSON,
        "value": JSON,
        "from": JSON,
        "to": JSON,
        "create_if_not_exists": JSON,
    },
)
messages = st.fixed_dictionaries(
    {}, optional={"src": names, "dest": names, "body": bodies | JSON, "id": JSON}
)
lines = st.binary() | JSON.map(orjson.dumps) | messages.map(orjson.dumps)


@given(st.lists(lines, max_size=5))
@example([b'{"dest":"lin-kv","body":{},"src":"lww-kv"}'])  # services must not answer each other
def test_every_line_is_routed_or_reported(printed: list[Any]) -> None:
    file, received = io.BytesIO(), []
    journal = Journal(file)
    network = Network(VirtualLoop(), journal, lambda: 0)
    for name in ("n0", "n1", "c0"):
        network.add(name, lambda _src, _body, wire: received.append(orjson.loads(wire)))
    connect(network, default_services(Random))
    for line in printed:
        try:
            network.send_line("n0", line)
        except RunFailure as failure:
            assert "Node n0" in str(failure)  # noqa: PT017 - either outcome is right
    journal.flush()
    events = [orjson.loads(line) for line in file.getvalue().splitlines()]
    assert len(events) == 2 * len({event["message"]["id"] for event in events})
    assert all(message["dest"] in ("n0", "n1", "c0") for message in received)


replies = st.fixed_dictionaries(
    {"type": st.sampled_from(["send_ok", "poll_ok", "list_committed_offsets_ok"]) | JSON},
    optional={
        "offset": JSON,
        "msgs": st.dictionaries(st.text(), st.lists(st.lists(JSON, max_size=3), max_size=3)) | JSON,
        "offsets": st.dictionaries(st.text(), st.integers()) | JSON,
        "in_reply_to": JSON,
    },
)


OPERATIONS: list[tuple[str, list[Any]]] = [
    ("send", [["send", "k", 1]]),
    ("poll", [["poll"]]),
    ("assign", ["k"]),
]


def answered(steps: Generator[Any, Any, Any], *replies: Any) -> None:
    """Carry an operation on as far as replies go."""
    next(steps)
    for reply in replies:
        steps.send(reply)


# All operations share what is drawn: drawing takes longer than the client does.
@given(reply=replies, second=replies)
def test_a_client_takes_a_reply_or_calls_it_malformed(reply: Any, second: Any) -> None:
    for f, value in OPERATIONS:
        with pytest.raises((StopIteration, MalformedReply)):  # no operation has a third request
            answered(KafkaClient("n0").invoke(Op(0, 0, "invoke", 0, f, value)), reply, second)


@given(bodies | st.fixed_dictionaries({"code": JSON, "text": JSON}))
def test_every_error_reply_is_an_error_and_only_known_codes_are_definite(body: Any) -> None:
    error = error_of(body)
    assert not error.definite or type(body["code"]) is int
