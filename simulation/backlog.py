"""A log that is there before a run begins: what a node has to cope with that starts late in the life of a log.

Other nodes wrote it, one entry a message, and as many as the scenario says committed offsets in it. So small
tails and runs make a log of many segments and runs, and the number of nodes changes over the life of a log.
"""

from random import Random

from simulation.alone import Alone
from simulation.oracle import Asked, Body, Oracle
from simulation.registers import Store
from simulation.scenario import Scenario

KEYS = 4


def old_key(number: int) -> str:
    """The key of the old log's message of that number."""
    return f"old{number % KEYS}"


def write_backlog(scenario: Scenario, store: Store, oracle: Oracle) -> None:
    """Append the messages of before to the log in the store; its oracle sees them as any others."""
    count = scenario.backlog
    if not count:
        return
    nodes = Random(f"simulate/{scenario.seed}/old").choice((1, 2, 5)) if scenario.mixed else 1
    names = [f"old{number}" for number in range(nodes)]
    cluster = Alone(names, scenario.strategy, scenario.options_of("old", 1), store)

    def ask(node: str, body: Body) -> None:
        oracle.asked(body)
        asked = Asked(node, body, 0.0)
        oracle.answered(asked, cluster.ask(node, body), 0.0)

    for number in range(count):
        ask(names[0], {"type": "send", "key": old_key(number), "msg": number})
    for place, node in enumerate(names if scenario.mixed else []):
        offsets = {old_key(place): (count - place - 1) // KEYS}
        ask(node, {"type": "commit_offsets", "offsets": offsets})
    for node in names:
        oracle.killed(node)  # what it did not write is lost
