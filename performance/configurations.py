"""The configurations of `make performance`: published figures, and the aims of `leaderless`; and its plots.

The runs themselves are in bench/sweep/comparison.toml and bench/sweep/scaling.toml, under the same names.

An aim is a bound on a figure of `leaderless` (the median over repetitions), absolute or relative to the same
figure of another strategy or of another configuration in the same run.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

SUBJECT = "leaderless"


class Bound(NamedTuple):
    """An aim: `figure` of `of` is "at most" ("at least", "above") `limit`, or so many times that of `than`.

    `than`: the same figure of another ("strategy", name) or ("configuration", name) of the same run.
    """

    figure: str
    relation: str
    limit: float
    than: tuple[str, str] | None = None
    of: str = SUBJECT


class Configuration(NamedTuple):
    """A part of the table: `known` as others measured or modelled it.

    `real` was measured with the real tool, on a quiet machine of two cores. Its operations a second are all
    operations of clients, divided by the time limit.
    """

    name: str
    title: str
    known: str
    aims: tuple[Bound, ...]
    real: Mapping[str, str] = MappingProxyType({})


class Slope(NamedTuple):
    """A plot of the matrices called `name`, over `axis` of their cells; `label` is below it.

    `measured_x`, if any, is the figure to draw against instead: the value that a run reached, not
    the one that it was allowed.
    """

    name: str
    title: str
    label: str
    axis: str
    measured_x: str | None = None


_OPS, _MESSAGES, _P50, _P99, _POLL_P99 = (
    "throughput_ops_per_s", "server_messages_per_op", "send_p50_ms", "send_p99_ms", "poll_p99_ms",
)  # fmt: skip
_CALM = ("configuration", "5-nodes-calm")
_VALID = Bound("valid", "at least", 1.0)

CONFIGURATIONS = (
    Configuration(
        "2-nodes", "2 nodes, 2n, rate 1000",
        "durable published solutions 5.5 to 7.9 server messages an operation (best 4.4); a fixed leader in"
        " memory 0.77",
        (Bound(_MESSAGES, "at most", 1.0), Bound(_P50, "at most", 5.0)),
        {_OPS: "750", _P50: "5.4 to 5.6"},
    ),
    Configuration(
        "16-nodes", "16 nodes, 2n, rate 10 000",
        "published strong leader 5.05 (7.23 in all)",
        (
            Bound(_MESSAGES, "at most", 1.2),
            Bound(_OPS, "above", 1.0, ("strategy", "leader")),
            Bound(_OPS, "above", 1.0, ("strategy", "cas")),
        ),
        {_OPS: "1250 to 1650", _P50: "10 to 14"},
    ),
    Configuration(
        "5-nodes-20n", "5 nodes, 20n, rate 10 000", "model: 0.3 to 0.5",
        (Bound(_MESSAGES, "at most", 0.8),),
    ),
    Configuration(
        "16-nodes-10ms", "16 nodes, 2n, rate 10 000, latency 10 ms exponential",
        "model: plain cas 14, collapsing; combining 1.0",
        (Bound(_MESSAGES, "at most", 1.1), Bound(_P99, "at most", 150.0)),
    ),
    Configuration(
        "3-nodes-100ms", "3 nodes, 2n, rate 10, latency 100 ms constant", "floor: 2 hops, 200 ms",
        (Bound(_P50, "at most", 220.0),),
    ),
    Configuration(
        "5-nodes-calm", "5 nodes, 2n, rate 1000, latency 10 ms (the calm counterpart of the next)", "", (),
    ),
    Configuration(
        "5-nodes-partitions", "5 nodes, 2n, rate 1000, latency 10 ms, partitions every 2 s", "",
        (
            _VALID, Bound("strict_valid", "at least", 1.0), Bound("ok_fraction", "at least", 1.0),
            Bound(_P99, "at most", 3.0, _CALM), Bound(_POLL_P99, "at most", 3.0, _CALM),
        ),
        {_OPS: "219", _MESSAGES: "1.84", _P50: "72", _P99: "442", _POLL_P99: "11"},
    ),
    Configuration(
        "5-nodes-100ms", "5 nodes, 4n, rate 200, latency 100 ms exponential", "", (_VALID,),
        {_OPS: "43", _P50: "729", _P99: "1759", _POLL_P99: "892"},
    ),
    Configuration(
        "5-nodes-100ms-partitions",
        "5 nodes, 4n, rate 200, latency 100 ms exponential, partitions every 3 s", "", (_VALID,),
    ),
)  # fmt: skip

_NODES = "5 nodes, 2n, rate 1000, latency 10 ms"
SLOPES = (
    Slope("nodes", "Nodes (2 clients each, rate 1000, latency 10 ms)", "nodes", "nodes"),
    Slope("clients", "Clients per node (5 nodes, rate 1000, latency 10 ms)", "clients per node", "concurrency"),
    Slope("keys", f"Keys at a time ({_NODES})", "keys at a time", "keys"),
    Slope(
        "messages", "Messages per key (5 nodes, 2n, one key, rate 10 000, no latency)",
        "messages of the longest key", "max-writes-per-key", "longest_key_messages",
    ),
)  # fmt: skip
