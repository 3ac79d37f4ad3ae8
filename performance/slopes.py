"""The plots of how cost grows: which axis of sweeps/scaling.toml each one draws."""

from dataclasses import dataclass


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
