"""Where the rooms of the bench stand: in a checkout, or in the folder `_bench` of the installed package."""

import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
INSTALLED = HOUSE.name == "_bench"
EXAMPLES = HOUSE / "workloads" / "examples"
NODE_PACKAGE = HOUSE.parent if INSTALLED else HOUSE / "leaderless"
# How a process starts the bench, whatever stands in its folder; how a person does, and starts our node.
START = [sys.executable, "-P", str(NODE_PACKAGE / "maelstrom.py")]
MAELSTROM, NODE = ("maelstrom", "leaderless node") if INSTALLED else ("./maelstrom", "./run.sh")
IN_A_CHECKOUT = " (in a checkout of leaderless, after `make setup`)" if INSTALLED else ""
