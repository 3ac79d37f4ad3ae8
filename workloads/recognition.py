"""The workloads by name, and which of them a history is of, by what its clients did."""

from collections.abc import Iterable, Sequence

from runs.history import NEMESIS, Op

# All operations of a workload's clients; those of a `txn` are micro-operations.
OPERATIONS = {
    "broadcast": {"broadcast", "read"},
    "echo": {"echo"},
    "g-counter": {"add", "read"},
    "g-set": {"add", "read"},
    "kafka": {"send", "poll", "assign", "subscribe", "crash", "debug-topic-partitions"},
    "lin-kv": {"read", "write", "cas"},
    "pn-counter": {"add", "read"},
    "txn-list-append": {"r", "append"},
    "txn-rw-register": {"r", "w"},
    "unique-ids": {"generate"},
}


def candidates(history: Sequence[Op]) -> list[str]:
    """The workloads that the history may be of, by name.

    A counter whose deltas are none of them negative is a g-counter; a pn-counter is judged in the same way.
    """
    done = operations(history)
    found = [name for name, allowed in OPERATIONS.items() if done <= allowed]
    if "add" not in done:
        return found
    deltas = [op.value for op in history if op.f == "add"]
    sums = [op.value for op in history if op.f == "read" and op.type == "ok"]
    if any(isinstance(delta, int) and delta < 0 for delta in deltas):
        return ["pn-counter"]
    if any(isinstance(value, int) for value in sums):
        return ["g-counter"]
    return ["g-set"] if any(isinstance(value, list) for value in sums) else found


def operations(history: Iterable[Op]) -> set[str]:
    """The names of what clients did."""
    found: set[str] = set()
    for op in history:
        if op.f == "txn":
            mops = op.value if isinstance(op.value, list) else ()
            found.update(str(mop[0]) for mop in mops if isinstance(mop, list) and mop)
        elif op.process != NEMESIS:
            found.add(str(op.f))
    return found
