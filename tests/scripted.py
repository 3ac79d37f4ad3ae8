"""Nodes that are scripts (`examples`, `tests/nodes`) as nodes of the simulator, fed line by line."""

import sys
from pathlib import Path
from runpy import run_path
from typing import Any
from unittest.mock import patch

import orjson

from simulation.nodes import MakeNode, NodeSession

ROOT = Path(__file__).parents[1]


class Script(NodeSession):
    """A `NodeSession`: the node that a script makes."""

    deadline: float | None = None

    def __init__(self, node: Any) -> None:
        self._node = node
        self._lines: list[bytes] = []
        node.send = self._send

    def receive(self, line: bytes, now: float, arrived_at: float | None = None) -> None:
        self._node.now = now
        self._node.receive(orjson.loads(line))
        self.pass_time(now)

    def pass_time(self, now: float) -> None:
        self.deadline = self._node.tick(now)

    def take(self) -> bytes:
        lines, self._lines = self._lines, []
        return b"".join(lines)

    def _send(self, dest: str, body: dict[str, Any]) -> None:
        line = orjson.dumps({"src": self._node.id, "dest": dest, "body": body})
        self._lines.append(line + b"\n")


def node_of(script: Path, *arguments: str) -> MakeNode:
    """Makes nodes of a script, as the simulator asks for them."""

    def make(_name: str, _start: int) -> NodeSession:
        made: list[Any] = []
        with (
            patch.object(sys, "path", [str(script.parent), *sys.path]),
            patch.object(sys, "argv", [str(script), *arguments]),
        ):
            import maelstrom_node  # type: ignore[import-not-found]

            def run(node: Any) -> None:
                made.append(node)

            with patch.object(maelstrom_node.Node, "run", run):
                run_path(str(script), run_name="__main__")
        return Script(made[0])

    return make
