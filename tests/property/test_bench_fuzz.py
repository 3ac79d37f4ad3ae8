"""No node can break the bench: whatever it prints is routed, answered, or reported."""

import io
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
from workloads.interface import MalformedReply, error_of
from workloads.kafka.client import KafkaClient

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["n0", "n1", "c0", "lin-kv", "seq-kv", "lww-kv", "lin-tso", "n9", ""])
request_types = st.sampled_from(["read", "write", "cas", "ts", "init", "error"]) | json_values
bodies = st.fixed_dictionaries(
    {},
    optional={
        "type": request_types,
        "msg_id": json_values,
        "in_reply_to": json_values,
        "key": json_values,
        "value": json_values,
        "from": json_values,
        "to": json_values,
        "create_if_not_exists": json_values,
    },
)
messages = st.fixed_dictionaries(
    {}, optional={"src": names, "dest": names, "body": bodies | json_values, "id": json_values}
)
lines = st.binary() | json_values.map(orjson.dumps) | messages.map(orjson.dumps)


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
    {"type": st.sampled_from(["send_ok", "poll_ok", "list_committed_offsets_ok"]) | json_values},
    optional={
        "offset": json_values,
        "msgs": st.dictionaries(st.text(), st.lists(st.lists(json_values))) | json_values,
        "offsets": st.dictionaries(st.text(), st.integers()) | json_values,
        "in_reply_to": json_values,
    },
)


@pytest.mark.parametrize(
    ("f", "value"), [("send", [["send", "k", 1]]), ("poll", [["poll"]]), ("assign", ["k"])]
)
@given(reply=replies, second=replies)
def test_a_client_takes_a_reply_or_calls_it_malformed(
    f: str, value: list[Any], reply: Any, second: Any
) -> None:
    steps = KafkaClient("n0").invoke(Op(0, 0, "invoke", 0, f, value))
    next(steps)
    try:
        steps.send(reply)
        steps.send(second)
    except (StopIteration, MalformedReply):
        return
    pytest.fail("no operation has more than two requests")


@given(bodies | st.fixed_dictionaries({"code": json_values, "text": json_values}))
def test_every_error_reply_is_an_error_and_only_known_codes_are_definite(body: Any) -> None:
    error = error_of(body)
    assert not error.definite or type(body["code"]) is int
