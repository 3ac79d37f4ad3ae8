"""A log that is there before a run begins: what a node has to cope with that starts late in the life of a log.

One node wrote it, one entry a message, with the limits of the run. So small tails and runs make a log of many
segments and runs.
"""

from leaderless.core.strategy import Options
from simulation.oracle import Oracle
from simulation.registers import Store
from simulation.stepped import SteppedCluster

KEYS = 4


def old_key(number: int) -> str:
    """The key of the old log's message of that number."""
    return f"old{number % KEYS}"


def write_backlog(
    strategy: str, count: int, options: Options, store: Store, oracle: Oracle
) -> None:
    """Append `count` messages to the log in the store; its oracle sees them as any others."""
    cluster = SteppedCluster(["old"], strategy, options, store=store)
    for number in range(count):
        body = {"type": "send", "key": old_key(number), "msg": number}
        oracle.asked(body)
        cluster.ask("old", body)
