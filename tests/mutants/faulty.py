"""The faulty nodes of `tests/nodes` as nodes of the simulator: the same scripts, fed line by line."""

import sys
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any
from unittest.mock import patch

import orjson

from simulation.nodes import NodeSession

FOLDER = Path(__file__).parents[1] / "nodes"
# script -> what is wrong with it. They keep their log in memory, so they are right, if at all, on one node.
FAULTY = {
    "kafka_duplicates.py": "appends some messages twice",
    "kafka_loses.py": "forgets messages that it acknowledged",
    "kafka_mixes_keys.py": "answers with messages of other keys",
    "kafka_never_replicates.py": "keeps each key on one node, unless all clients ask there",
    "kafka_reorders.py": "hands out the newest message first",
    "kafka_skips.py": "begins some answers a message too late",
}
NODES = {"kafka_never_replicates.py": 2}


def world_of(script: str) -> dict[str, Any]:
    """Where a script can be told from a right node: nothing else is wrong there."""
    nodes = NODES.get(script, 1)
    # `cas`: any strategy without an oracle of its own
    return {"strategy": "cas", "nemesis": (), "nodes": nodes, "clients": 2, "rate": 100.0}


class Script:
    """A `NodeSession`: the node that a script makes."""

    deadline: float | None = None

    def __init__(self, node: Any) -> None:
        self._node = node
        self._lines: list[bytes] = []
        node.send = self._send

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        self._node.receive(orjson.loads(line))

    def pass_time(self, now: float) -> None:
        raise AssertionError("it never asks for time")

    def take(self) -> bytes:
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def _send(self, dest: str, body: dict[str, Any]) -> None:
        line = orjson.dumps({"src": self._node.id, "dest": dest, "body": body})
        self._lines.append(line + b"\n")


def node_of(script: str) -> Callable[[str, int], NodeSession]:
    """Makes nodes of a script, as the simulator asks for them."""

    def make(_name: str, _start: int) -> NodeSession:
        made: list[Any] = []
        with patch.object(sys, "path", [str(FOLDER), *sys.path]):
            import maelstrom_node  # type: ignore[import-not-found]

            def run(node: Any) -> None:
                made.append(node)

            with patch.object(maelstrom_node.Node, "run", run):
                run_path(str(FOLDER / script), run_name="__main__")
        return Script(made[0])

    return make
