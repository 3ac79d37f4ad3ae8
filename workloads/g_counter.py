"""g-counter: a counter that only goes up.

    {"type": "add", "delta": 3}  ->  {"type": "add_ok"}
    {"type": "read"}             ->  {"type": "read_ok", "value": 17}

All is as in `workloads.pn_counter`, but no delta is negative: where that workload would add a negative number,
this one draws the next operation. So adds are from 0 to 4, and two operations in three are reads. The challenge
is to keep the counter in the service `seq-kv`.

The rules are those of Maelstrom's workload of this name.
"""

from functools import partial

from workloads import pn_counter

build = partial(pn_counter.counter, "g-counter", 0, 2)
JUDGE = pn_counter.JUDGE
