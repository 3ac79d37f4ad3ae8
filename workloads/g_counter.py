"""g-counter: a counter that only goes up.

    {"type": "add", "delta": 3}  ->  {"type": "add_ok"}
    {"type": "read"}             ->  {"type": "read_ok", "value": 17}

All is as in `workloads.pn_counter`, but no delta is negative: where that workload would add a negative number,
this one draws the next operation. So adds are from 0 to 4, and two operations in three are reads. The challenge
is to keep the counter in the service `seq-kv`.

The rules are those of Maelstrom's workload of this name.
"""

from workloads import pn_counter
from workloads.interface import Draft, Judge, Setting, Workload
from workloads.mixes import mix, read
from workloads.pn_counter import MOST


def build(setting: Setting) -> Workload:
    """The workload for this run."""
    random = setting.random("g-counter")

    def add() -> Draft:
        return Draft("add", random.randint(0, MOST))

    return pn_counter.workload(setting, mix(random, add, read, read))


def judge() -> Judge:
    """Whether all final reads are possible sums."""
    return pn_counter.judge()
