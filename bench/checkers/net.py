"""How many messages an operation cost. [facts: Maelstrom's net/checker.clj]"""

from collections.abc import Sequence
from typing import Any

from bench.checkers.basics import single
from bench.net import Network, Traffic
from runs.history import NEMESIS, Op
from runs.keyword import Keyword, keywords


def net_statistics(history: Sequence[Op], network: Network) -> dict[Keyword, Any]:
    """Messages sent and received: all, those with a client at either end, and those without.

    `init` and its reply count too, as in the results of the real tool; `msgs-per-op` is per
    invocation by a client, crashes included.
    """
    operations = sum(op.type == "invoke" and op.process != NEMESIS for op in history)
    clients, servers = network.clients, network.servers
    both = Traffic(clients.sent + servers.sent, clients.received + servers.received)
    result = keywords(all=_counts(both), clients=_counts(clients), servers=_counts(servers))
    if operations:
        for name, traffic in (("all", both), ("servers", servers)):
            per_op = single(traffic.sent / operations)
            result[Keyword(name)][Keyword("msgs-per-op")] = per_op
    result[Keyword("valid?")] = True
    return result


def _counts(traffic: Traffic) -> dict[Keyword, int]:
    return keywords(send_count=traffic.sent, recv_count=traffic.received, msg_count=traffic.sent)
