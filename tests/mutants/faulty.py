"""The faulty nodes of `tests/nodes` as nodes of the simulator: the same scripts, fed line by line."""

from pathlib import Path
from typing import Any

from simulation.hosts import MakeNode
from tests import scripted

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


def node_of(script: str) -> MakeNode:
    """Makes nodes of a script, as the simulator asks for them."""
    return scripted.node_of(FOLDER / script)
