"""The node's trace in a file: its header, its lines, and what a second life adds."""

from pathlib import Path

import orjson
import pytest

from leaderless.core.messages import Step
from leaderless.core.strategy import Identity, Trace
from leaderless.runtime.command_line import parse_options
from leaderless.runtime.trace_file import trace_to
from specs.translation import read


def identity(node: str, life: str) -> Identity:
    return Identity(node, ("n0", "n1"), f"{node}.{life}")


def test_nodes_share_a_file_and_restarts_are_told(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    for node, life in (("n0", "a"), ("n1", "b"), ("n0", "c")):
        trace_to(path, identity(node, life), 16)(Step("Conflict", {}))
    trace = read(path.read_text().splitlines())
    assert trace.segments_per_run == 16
    assert [(event["node"], event["step"]) for event in trace.events] == [
        ("n0", "Conflict"),
        ("n1", "Conflict"),
        ("n0", "Restart"),
        ("n0", "Conflict"),
    ]
    assert trace.events[2]["incarnation"] == "c"


def test_fields_are_made_when_somebody_listens() -> None:
    listened, unheard = Trace(on=True), Trace()
    for trace in (listened, unheard):
        trace("Fence", lambda epoch: {"epoch": epoch}, 3)
    assert listened.take() == [Step("Fence", {"epoch": 3})]
    assert unheard.take() == listened.take() == []


def test_a_step_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.ndjson"
    trace_to(path, identity("n0", "a"), 16)(Step("Fence", {"epoch": 3}))
    last = orjson.loads(path.read_bytes().splitlines()[-1])
    assert last == {"step": "Fence", "node": "n0", "epoch": 3}


@pytest.mark.parametrize(("arguments", "lanes"), [(["--trace", "x"], 1), ([], 4)])
def test_a_traced_node_has_one_lane(arguments: list[str], lanes: int) -> None:
    assert parse_options(arguments).options.limits.lanes == lanes
