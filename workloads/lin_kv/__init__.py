"""lin-kv: a linearizable key-value store, key by key.

    {"type": "read", "key": 0}                        ->  {"type": "read_ok", "value": 3}
    {"type": "write", "key": 0, "value": 3}           ->  {"type": "write_ok"}
    {"type": "cas", "key": 0, "from": 3, "to": 4}     ->  {"type": "cas_ok"}

A write creates the key. Reading a key that does not exist is error 20; so is a cas on it, and a cas that finds
another value than `from` is error 22. Both are definite: nothing happened. A node that cannot tell must say so
with an indefinite error (0 or 13) or not at all; the operation is then `info`, and may have taken effect at any
later time, or never. A read has no effect, so an unknown read simply failed.

In a history an operation's value is `[key, argument]`: `[0, None]` for a read that was invoked,
`[0, 3]` for one that saw 3 and for a write of 3, `[0, [3, 4]]` for a cas from 3 to 4.

The verdict is valid when the history of every key is linearizable: each operation seems to happen in one
instant between its invocation and its completion. Keys are judged one by one, which is enough (linearizability
composes) and keeps each search short. Where a search reaches its bound, that key is `"unknown"`. An invalid key
names the operation at whose completion every possible explanation of the history has ended, what the key could
have held by then, and which operations were under way.

The rules are those of Maelstrom's workload of this name on Jepsen's linearizable register.
"""

from functools import partial

from workloads.interface import Judge, Setting, Workload
from workloads.lin_kv.checker import check, explain
from workloads.lin_kv.client import LinKvClient
from workloads.lin_kv.generator import LinKvGenerator


def build(setting: Setting) -> Workload:
    """The workload for this run. Clients wait ten mean latencies, and at least a second."""
    timeout_ms = max(1000, 10 * round(setting.options.get("latency_ms", 0)))
    return Workload(
        generator=LinKvGenerator(setting.random("lin-kv"), len(setting.nodes), setting.concurrency),
        open_client=partial(LinKvClient, timeout_ms=timeout_ms),
        judge=judge(),
        idempotent=frozenset({"read"}),
        reusable=True,
    )


def judge() -> Judge:
    """The linearizability of every key."""
    return Judge(check, explain)
