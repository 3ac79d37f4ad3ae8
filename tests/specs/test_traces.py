"""Traces against HeadLog: hand-made ones are accepted, and every tampered one is rejected at the
step that was tampered with (or at the first that cannot follow it)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specs.store_order import in_store_order
from specs.trace import main, validate
from specs.translation import Trace, TraceError, config_text, module_text, read

FOLDER = Path(__file__).parent / "traces"
CONFLICT = "seal-conflict-commits"
HAND_OVER = "timeout-hand-over"
RESTART = "restart-fence-compaction"

Events = list[dict[str, Any]]


def load(name: str) -> Trace:
    with (FOLDER / f"{name}.ndjson").open() as lines:
        return read(lines)


def tampered(name: str, tamper: Callable[[Events], Any]) -> Trace:
    trace = load(name)
    events = [dict(copy.deepcopy(event)) for event in trace.events]
    tamper(events)
    return Trace(trace.segments_per_run, tuple(events))


@pytest.mark.tlc
@pytest.mark.parametrize("name", [CONFLICT, HAND_OVER, RESTART])
def test_hand_made_traces_are_accepted(name: str) -> None:
    assert validate(load(name)).accepted


def drop(number: int) -> Callable[[Events], Any]:
    return lambda events: events.pop(number - 1)


def drop_two(number: int) -> Callable[[Events], Any]:
    return lambda events: [events.pop(number - 1) for _ in range(2)]


def insert(before: int, **event: Any) -> Callable[[Events], Any]:
    return lambda events: events.insert(before - 1, event)


def change(number: int, **fields: Any) -> Callable[[Events], Any]:
    return lambda events: events[number - 1].update(fields)


def swap_offsets(events: Events) -> None:
    block = events[8]["entries"][0]["appends"]["x"]
    block[0] -= 1


TAMPERED = {
    # the second commit is dropped: its acknowledgement, now step 9, has nothing to stand on
    "dropped entry": (CONFLICT, drop(9), 9, "not in the node's view"),
    "swapped offset": (CONFLICT, swap_offsets, 9, "offsets are not those"),
    "wrong offset acknowledged": (CONFLICT, change(10, offsets={"x": 1}), 10, "offsets the log"),
    "conflict that was none": (CONFLICT, insert(5, step="Conflict", node="n0"), 5, "cannot have"),
    "cas without reading the head": (CONFLICT, drop(8), 8, "has not read the head"),
    "cas from an old head": (CONFLICT, drop_two(7), 7, "no longer what the node read"),
    "poll that skips": (CONFLICT, change(11, offsets=[2]), 11, "contiguous"),
    "poll below the offset asked": (CONFLICT, change(11, offsets=[0, 1, 2]), 11, "contiguous"),
    "sealed by a limit of its own": (
        CONFLICT,
        insert(6, step="Seal", node="n0", base=0, length=1),
        6,
        "not full",
    ),
    # a tail is full where its segment ends: the second entry could not have been added to it
    "segment shorter than the tail": (CONFLICT, change(13, length=1), 9, "tail is full"),
    "seal left out": (CONFLICT, drop(13), 13, "not sealed"),
    "view longer than the log": (CONFLICT, change(16, length=4), 16, "another length"),
    "commits changed on the way": (
        CONFLICT,
        lambda events: events[13]["entries"][0].update(commits={"x": 2}),
        14,
        "offsets are not those",
    ),
    "acknowledged although absent": (HAND_OVER, drop(5), 5, "not in the node's view"),
    "committed after the asker did": (
        HAND_OVER,
        insert(
            22,
            step="Commit",
            node="n0",
            base=0,
            entries=[{"slot": 4, "id": ["n1.0", 2], "appends": {"y": [2, 1]}}],
        ),
        22,
        "in the log already",
    ),
    "answer nobody gave": (HAND_OVER, drop(10), 10, "not in the node's view"),
    "batch never handed over": (HAND_OVER, drop(9), 9, "never given"),
    "append while fenced": (
        RESTART,
        insert(
            16,
            step="Commit",
            node="n0",
            base=2,
            entries=[{"slot": 2, "id": ["n0.1901", 1], "appends": {"y": [0, 1]}}],
        ),
        16,
        "fenced",
    ),
    "restart under the old name": (RESTART, change(8, incarnation=1763), 8, "fresh incarnation"),
    "definite error while open": (RESTART, drop(13), 13, "cannot have"),
    "stale claim moves the cursor": (
        RESTART,
        insert(28, step="CompactCursor", node="n1", base=0),
        28,
        "stale",
    ),
    "deleted before the run": (RESTART, drop(32), 32, "next step"),
    "claim without a new epoch": (RESTART, change(24, epoch=1), 24, "next epoch"),
}


@pytest.mark.tlc
@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_traces_are_rejected_at_the_right_step(case: str) -> None:
    name, tamper, step, reason = TAMPERED[case]
    judgement = validate(tampered(name, tamper))
    assert (judgement.accepted, judgement.step) == (False, step), judgement
    assert reason in judgement.reason


def delayed(trace: Trace, number: int) -> Trace:
    """The event, counted from 1, written only just before the next of its node."""
    events = list(trace.events)
    event = events.pop(number - 1)
    own = [i for i, e in enumerate(events) if i >= number - 1 and e["node"] == event["node"]]
    events.insert(own[0] if own else len(events), event)
    return Trace(trace.segments_per_run, tuple(events))


@pytest.mark.parametrize(
    ("name", "number"), [(CONFLICT, 5), (CONFLICT, 9), (HAND_OVER, 10), (HAND_OVER, 17)]
)
def test_a_late_answer_changes_nothing(name: str, number: int) -> None:
    trace = delayed(load(name), number)
    ordered = [trace.events[i] for i in in_store_order(trace.events)]
    created = [e["entries"][-1]["slot"] + 1 for e in ordered if e["step"] == "Commit"]
    assert created == sorted(created)
    length = 0
    for event in ordered:
        if event["step"] == "Commit":
            length = event["entries"][-1]["slot"] + 1
        elif event["step"] == "Refresh" and name == CONFLICT:  # the other has an unseen commit
            assert event["length"] == length


def test_contradictions_keep_the_order_given() -> None:
    read = {"step": "Refresh", "node": "n0", "length": 2, "epoch": 0}
    earlier = {"step": "Refresh", "node": "n0", "length": 1, "epoch": 0}
    assert in_store_order([read, earlier]) == [0, 1]


@pytest.mark.tlc
def test_a_commit_whose_answer_came_late_is_accepted() -> None:
    moved = delayed(load(HAND_OVER), 17)
    assert validate(moved).accepted


@pytest.mark.tlc
def test_the_command_names_the_step_and_the_event(tmp_path: Path) -> None:
    trace = tampered(CONFLICT, swap_offsets)
    lines = [{"segments_per_run": trace.segments_per_run}, *trace.events]
    path = tmp_path / "trace.ndjson"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    result = CliRunner().invoke(main, [str(path)])
    assert result.exit_code == 1
    assert "rejected at step 9" in result.output
    assert '"step": "Commit"' in result.output


def test_header_is_required() -> None:
    with pytest.raises(TraceError, match="header"):
        read(['{"step": "Fence", "node": "n0"}'])


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("not json", "line 2 is not JSON"),
        ('{"step": "Jump", "node": "n0"}', "no step of HeadLog"),
        ('["Fence"]', "no step of HeadLog"),
        ('{"step": "Seal", "node": "n0"}', "Seal lacks base"),
        ('{"step": "Seal", "base": 0}', "Seal lacks node"),
    ],
)
def test_bad_lines_are_named(line: str, complaint: str) -> None:
    with pytest.raises(TraceError, match=complaint):
        read(['{"segments_per_run": 2}', line])


def test_a_writer_without_incarnation_is_refused() -> None:
    event = {"step": "Send", "node": "n0", "id": ["n0", 1], "epoch": 0}
    line = json.dumps(event | {"appends": {}, "commits": {}})
    with pytest.raises(TraceError, match=r"node\.incarnation"):
        module_text(read(['{"segments_per_run": 2}', line]))


def test_incarnations_keep_their_order_only() -> None:
    text = module_text(load(RESTART))
    assert 'id |-> [node |-> "n0", incarnation |-> 0, seq |-> 1]' in text
    assert "incarnation |-> 1]" in text
    assert "1901" not in text  # a clock reading would not fit TLC's integers


def test_absent_keys_are_filled_in() -> None:
    text = module_text(load(CONFLICT))
    assert 'count |-> ("x" :> 1 @@ "y" :> 0)' in text
    assert 'first |-> ("x" :> 2 @@ "y" :> -1)' in text


def test_configuration_has_room_for_the_trace() -> None:
    text = config_text(load(CONFLICT))
    assert "RunSegments = 1" in text
    assert "INVARIANT NotAccepted" in text
