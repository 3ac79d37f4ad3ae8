"""broadcast: whatever one node is told, every node knows in the end.

    {"type": "topology", "topology": {"n0": ["n1"], "n1": ["n0"]}}  ->  {"type": "topology_ok"}
    {"type": "broadcast", "message": 7}                             ->  {"type": "broadcast_ok"}
    {"type": "read"}                                                ->  {"type": "read_ok", "messages": [7]}

Once, before all operations, every node gets the same `topology`: each node's neighbours (`--topology`, by
default a grid). It is a suggestion. A node that is killed and started again does not get it a second time. One
that joins gets that of the nodes which are there then; the others hear nothing of it.

Half of the operations broadcast 0, 1, 2, ...; the others read. The order of a read's messages does not matter.
A node may need time to show a message. After the faults are healed and the recovery time is over, every worker
reads once more (`:final? true` in the history). The result is that of `workloads.set_full`. It says which
messages are lost, stale or never read, and the *stable latencies*: the time until every read had a message.
Messages an operation (`:net :servers :msgs-per-op`) are the other figure of the challenge.

A read without an answer failed, and a broadcast without one may have happened.

The rules are those of Maelstrom's workload of this name and Jepsen's `set-full` checker.
"""

from functools import partial
from itertools import count

from runs.history import Op
from workloads.interface import Draft, Setting, Steps, Workload
from workloads.mixes import Neighbours, OnceEach, final_read, mix, read, topology
from workloads.replies import ARRAY, Stateless, add_or_read, ask
from workloads.set_full import judge_of

JUDGE = judge_of("broadcast")


def _tell(node: str, _op: Op, neighbours: Neighbours) -> Steps:
    yield from ask(node, {"type": "topology", "topology": neighbours})


def build(setting: Setting) -> Workload:
    """The workload for this run; of the options only `topology` counts."""
    messages = count()
    shape = setting.options.get("topology", "grid")
    return Workload(
        generator=mix(
            setting.random("broadcast"), lambda: Draft("broadcast", next(messages)), read
        ),
        final_generator=OnceEach(setting.concurrency, final_read),
        set_up=lambda nodes, node: Stateless(
            node, partial(_tell, neighbours=topology(shape, nodes))
        ),
        open_client=partial(
            Stateless,
            perform=partial(
                add_or_read, field="message", value=ARRAY, read="messages", definite=True
            ),
        ),
        judge=JUDGE,
        idempotent=frozenset({"read"}),
    )
