"""Nodes that are scripts (`workloads/examples`, `tests/nodes`) as nodes of the simulator, one world each."""

from pathlib import Path
from random import Random

from simulation.hosts import MakeNode, NodeSession
from simulation.strangers import Drawn, ScriptedNode

ROOT = Path(__file__).parents[1]


def node_of(script: Path, *arguments: str, drawn: Drawn | None = None) -> MakeNode:
    """Makes nodes of a script, as the simulator asks for them. An error of the script is one of the test."""
    drawn = drawn or Drawn(script)

    def failed(why: str) -> None:
        raise RuntimeError(why)

    def make(name: str, start: int) -> NodeSession:
        node = ScriptedNode(name, Random(f"{name}/{start}"), drawn, failed, now=start * 1e-6)
        node.load(script, arguments)
        return node

    return make
