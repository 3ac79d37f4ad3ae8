"""The configurations of `make performance`: published figures, and the aims of `leaderless`; and its plots.

The runs themselves are in sweeps/comparison.toml and sweeps/scaling.toml, under the same names.

An aim is a bound on a figure of `leaderless` (the median over repetitions), absolute or relative to the same
figure of another strategy or of another configuration in the same run.
"""

from dataclasses import dataclass

SUBJECT = "leaderless"


@dataclass(frozen=True, slots=True)
class Bound:
    """An aim: `figure` at most (or `at_least`, or `above`) `limit` times `of`.

    `of` is 1 without `than`; with it, the same figure of another ("strategy", name) or ("configuration",
    name) of the same run.
    """

    figure: str
    relation: str  # "at most" | "at least" | "above"
    limit: float
    than: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class OnRealTool:
    """A figure of `leaderless` on the real tool: the lowest and the highest that was seen."""

    figure: str
    low: float
    high: float

    @classmethod
    def once(cls, figure: str, value: float) -> "OnRealTool":
        """A figure of which there is one measurement."""
        return cls(figure, value, value)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A part of the table: `known` as others measured or modelled it.

    `real` was measured with the real tool, on a quiet machine of two cores. Its operations a second are all
    operations of clients, divided by the time limit.
    """

    name: str
    title: str
    known: str
    aims: tuple[Bound, ...]
    real: tuple[OnRealTool, ...] = ()


@dataclass(frozen=True, slots=True)
class Slope:
    """A plot of the matrices called `name`, over `axis` of their cells; `label` is below it.

    `measured_x`, if any, is the figure to draw against instead: the value that a run reached, not
    the one that it was allowed.
    """

    name: str
    title: str
    label: str
    axis: str
    measured_x: str | None = None


CONFIGURATIONS = (
    Configuration(
        "2-nodes",
        "2 nodes, 2n, rate 1000",
        "durable published solutions 5.5 to 7.9 server messages an operation (best 4.4); a fixed leader in"
        " memory 0.77; first prototype 1.39",
        (Bound("server_messages_per_op", "at most", 1.0), Bound("send_p50_ms", "at most", 5.0)),
        (
            OnRealTool.once("throughput_ops_per_s", 15_000 / 20),
            OnRealTool("send_p50_ms", 5.4, 5.6),
            OnRealTool.once("poll_p50_ms", 0.5),
        ),
    ),
    Configuration(
        "16-nodes",
        "16 nodes, 2n, rate 10 000",
        "published strong leader 5.05 (7.23 in all); first prototype 1.68",
        (
            Bound("server_messages_per_op", "at most", 1.2),
            Bound("throughput_ops_per_s", "above", 1.0, ("strategy", "leader")),
            Bound("throughput_ops_per_s", "above", 1.0, ("strategy", "cas")),
        ),
        (
            OnRealTool("throughput_ops_per_s", 25_000 / 20, 33_000 / 20),
            OnRealTool("send_p50_ms", 10, 14),
        ),
    ),
    Configuration(
        "5-nodes-20n",
        "5 nodes, 20n, rate 10 000",
        "model: 0.3 to 0.5",
        (Bound("server_messages_per_op", "at most", 0.8),),
    ),
    Configuration(
        "16-nodes-10ms",
        "16 nodes, 2n, rate 10 000, latency 10 ms exponential",
        "model: plain cas 14, collapsing; combining 1.0",
        (Bound("server_messages_per_op", "at most", 1.1), Bound("send_p99_ms", "at most", 150.0)),
    ),
    Configuration(
        "3-nodes-100ms",
        "3 nodes, 2n, rate 10, latency 100 ms constant",
        "floor: 2 hops, 200 ms",
        (Bound("send_p50_ms", "at most", 220.0),),
    ),
    Configuration(
        "5-nodes-calm",
        "5 nodes, 2n, rate 1000, latency 10 ms (the calm counterpart of the next)",
        "",
        (),
    ),
    Configuration(
        "5-nodes-partitions",
        "5 nodes, 2n, rate 1000, latency 10 ms, partitions every 2 s",
        "",
        (
            Bound("valid", "at least", 1.0),
            Bound("strict_valid", "at least", 1.0),
            Bound("ok_fraction", "at least", 1.0),
            Bound("send_p99_ms", "at most", 3.0, ("configuration", "5-nodes-calm")),
            Bound("poll_p99_ms", "at most", 3.0, ("configuration", "5-nodes-calm")),
        ),
        (
            OnRealTool.once("throughput_ops_per_s", 6_575 / 30),
            OnRealTool.once("server_messages_per_op", 1.84),
            OnRealTool.once("send_p50_ms", 72),
            OnRealTool.once("send_p99_ms", 442),
            OnRealTool.once("poll_p50_ms", 0.6),
            OnRealTool.once("poll_p99_ms", 11),
        ),
    ),
    Configuration(
        "5-nodes-100ms",
        "5 nodes, 4n, rate 200, latency 100 ms exponential",
        "",
        (Bound("valid", "at least", 1.0),),
        (
            OnRealTool.once("throughput_ops_per_s", 859 / 20),
            OnRealTool.once("send_p50_ms", 729),
            OnRealTool.once("send_p99_ms", 1_759),
            OnRealTool.once("poll_p50_ms", 238),
            OnRealTool.once("poll_p99_ms", 892),
        ),
    ),
    Configuration(
        "5-nodes-100ms-partitions",
        "5 nodes, 4n, rate 200, latency 100 ms exponential, partitions every 3 s",
        "",
        (Bound("valid", "at least", 1.0),),
    ),
)

SLOPES = (
    Slope("nodes", "Nodes (2 clients each, rate 1000, latency 10 ms)", "nodes", "nodes"),
    Slope(
        "clients",
        "Clients per node (5 nodes, rate 1000, latency 10 ms)",
        "clients per node",
        "concurrency",
    ),
    Slope(
        "keys", "Keys at a time (5 nodes, 2n, rate 1000, latency 10 ms)", "keys at a time", "keys"
    ),
    Slope(
        "messages",
        "Messages per key (5 nodes, 2n, one key, rate 10 000, no latency)",
        "messages of the longest key",
        "max-writes-per-key",
        measured_x="longest_key_messages",
    ),
)
