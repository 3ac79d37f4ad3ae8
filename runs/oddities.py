"""What is odd in a run that may be valid all the same, in sentences.

No checker of Maelstrom looks at cost or at names, and few ask how much must succeed. So a node that floods its
peers is valid, and so is one that speaks in the name of others, or refuses every tenth operation.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from runs.faults import listed
from runs.figures import ALL, UNASKED, Figures
from runs.traffic import NODE

STORM = 100  # server messages an operation
FAILING = 0.1  # the share of operations that do not succeed
_FOREIGN = (
    "They are counted as its own. Latency and partitions go by the name in `src`, as on the real Maelstrom,"
    " which does not see this. Write the node's own name there, also when it passes a request on: then it asks"
    " in its own name, and passes the answer back. --strict refuses this."
)
_TYPES, _TYPE_CHARACTERS = 4, 40  # of messages: so many are named


def oddities(figures: Figures, node_count: int | None) -> list[str]:
    """Return a sentence for each odd thing in the figures of a run; `node_count` is None if unknown."""
    names = " ".join(in_other_names({row["node"]: row for row in figures.table("foreign")}))
    told = [f"{names} {_FOREIGN}"] if names else []
    return [*told, *_storm(figures, node_count or 0), *_failing(figures)]


def in_other_names(by_node: Mapping[str, Any]) -> Iterator[str]:
    """How often each node wrote another name than its own into `src`, in sentences."""
    for node, found in sorted(by_node.items()):
        yield f"{node} sent {found['messages']:.0f} messages as {listed([*found['names']])}."


def _storm(figures: Figures, node_count: int) -> Iterator[str]:
    """More messages than when every node tells every other one of each operation, and more than `STORM`."""
    per_op = figures.numbers.get("server_messages_per_op") or 0.0
    everyone = node_count * (node_count - 1)
    if per_op <= max(STORM, everyone):
        return
    rows = [row for row in figures.table("by_type") if row["link"] != "client"]
    rows.sort(key=lambda row: -row["messages_per_operation"])
    types = (
        f"{row['type'] or 'without a type'}"[:_TYPE_CHARACTERS]
        + f" ({row['link']}) {row['messages_per_operation']:.2f}"
        for row in rows[:_TYPES]
    )
    enough = (
        f"With {node_count} nodes, {everyone} let each node tell every other one of an operation. "
    )
    told = f"By type: {', '.join(types)}." if rows else ""
    told += " Tell a node only what is new to it." * (rows[:1] != [] and rows[0]["link"] == NODE)
    storm = f"A storm of messages: {per_op:.2f} server messages an operation. "
    yield f"{storm}{enough * bool(everyone)}{told}".strip()


def _failing(figures: Figures) -> Iterator[str]:
    """So many operations did not succeed that a reader of `valid` should know."""
    count, missed = Counter[str](), Counter[str]()
    for row in figures.latency(ALL):
        if row["f"] not in UNASKED | {"cas"}:  # of random values, most are refused
            count[row["f"]] += row["operation_count"]
            missed[row["f"]] += row["operation_count"] * (row["outcome"] != "ok")
    if missed.total() < FAILING * count.total() or not missed.total():
        return
    told = ", ".join(f"{n} of {count[f]} `{f}`" for f, n in missed.most_common() if n)
    yield f"{missed.total() / count.total():.0%} of the operations did not succeed: {told}."
