"""Traces as real nodes write them: those of the simulated world are accepted, and tampered ones are not."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context
from leaderless.runtime.trace_file import TracedMachine, TraceFile
from simulation import nodes
from simulation.judge import judged as judged_world
from simulation.scenario import Scenario
from simulation.trace import judged, main
from simulation.world import World
from tests.simulation.test_refinement import BUSY, SEEDS, STEPS

pytestmark = pytest.mark.simulation

Lines = list[dict[str, Any]]
CALM = Scenario(12, **BUSY)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Lines]:
    """The trace of each seed."""
    folder = tmp_path_factory.mktemp("traces")
    return {each.seed: traced(each, folder / str(each.seed)) for each in (CALM, *SEEDS)}


def traced(scenario: Scenario, path: Path) -> Lines:
    """What the nodes of a scenario write into one file."""
    files: list[TraceFile] = []

    def strategy(context: Context) -> LeaderlessLog:
        files.append(TraceFile(path, context.identity.node))
        return LeaderlessLog(context._replace(trace=files[-1]))

    class Traced(TracedMachine):
        def __init__(self, *parts: Any) -> None:
            super().__init__(files[-1], *parts)

    world = World(replace(scenario, backlog=0), strategy)  # it begins with an empty log
    world.refinement = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "Machine", Traced)
        assert judged_world(world).failures == []
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def told(lines: Iterable[object]) -> str:
    return judged([orjson.dumps(line) for line in lines])


def test_real_traces_are_accepted_and_have_every_step(traces: dict[int, Lines]) -> None:
    assert {seed: told(lines) for seed, lines in traces.items()} == dict.fromkeys(traces, "")
    assert {line["step"] for lines in traces.values() for line in lines} >= STEPS | {
        "Start",
        "Asked",
        "Told",
    }


def place(lines: Lines, step: str, fits: Callable[[dict[str, Any]], Any] = bool) -> int:
    """Of the first line of that step that fits, from 0."""
    return next(at for at, line in enumerate(lines) if line["step"] == step and fits(line))


def drop_a_try(lines: Lines) -> int:
    node = lines.pop(place(lines, "Try"))["node"]
    return place(lines, "Told", lambda line: (line["node"], line["register"]) == (node, "head"))


def drop_a_write(lines: Lines) -> int:
    at = place(lines, "Asked", lambda line: line["register"] == "head" and line["old"])
    name = lines.pop(at)["new"]
    return place(lines, "Told", lambda line: line["new"] == name)


def acknowledge_at_once(lines: Lines) -> int:
    at = place(lines, "Send", lambda line: line["appends"])
    sent = lines[at]
    acked = {"step": "Acked", "node": sent["node"], "id": sent["id"]}
    lines.insert(at + 1, acked | {"offsets": dict.fromkeys(sent["appends"], 0)})
    return at + 1


def other_offsets(lines: Lines) -> int:
    at = place(lines, "Acked", lambda line: line["offsets"])
    key = next(iter(lines[at]["offsets"]))
    lines[at]["offsets"][key] += 1
    return at


def skip_in_a_poll(lines: Lines) -> int:
    at = place(lines, "Poll", lambda line: len(line["offsets"]) > 2)
    del lines[at]["offsets"][1]
    return at


def swap_an_offset(lines: Lines) -> int:
    at = place(lines, "Asked", lambda line: line["register"] == "head" and line["old"])
    lines[at]["value"]["entries"][-1][2] = {"k": [7, ["m"]]}
    name = lines[at]["new"]
    return place(lines, "Told", lambda line: line["new"] == name)


def no_such_step(lines: Lines) -> int:
    lines[5] = {"step": "Jump", "node": "n0"}
    return 5


def no_node(lines: Lines) -> int:
    del lines[7]["node"]
    return 7


TAMPERED: dict[Callable[[Lines], int], str] = {
    drop_a_try: "no node has tried",
    drop_a_write: "no node of the trace wrote",
    acknowledge_at_once: "not in its view",
    other_offsets: "Acked of",
    skip_in_a_poll: "is no run of its view",
    swap_an_offset: "and in the model",
    no_such_step: "Jump is no step of HeadLog",
    no_node: "node",
}


@pytest.mark.parametrize("tamper", TAMPERED, ids=lambda tamper: tamper.__name__)
def test_a_tampered_trace_is_rejected_at_the_right_line(
    tamper: Callable[[Lines], int], traces: dict[int, Lines]
) -> None:
    lines: Lines = orjson.loads(orjson.dumps(traces[CALM.seed]))
    at = tamper(lines)
    assert told(lines).startswith(f"rejected at line {at + 1}: ")
    assert TAMPERED[tamper] in told(lines)


def test_the_command_names_the_line(traces: dict[int, Lines], tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(b"\n".join(map(orjson.dumps, traces[CALM.seed])))
    bad.write_bytes(b'{"step": "Start", "node": "n0"}\nno JSON')
    assert CliRunner().invoke(main, [str(good)]).exit_code == 0
    both = CliRunner().invoke(main, [str(good), str(bad)])
    assert both.exit_code == 1
    assert f"{good}: accepted\n{bad}: rejected at line 2: " in both.output
    bad.write_bytes(b"")
    none = CliRunner().invoke(main, [str(bad)])
    assert (none.exit_code, none.output.split(": ")[1]) == (1, "rejected")
