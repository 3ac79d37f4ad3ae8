"""What `make bench-scaling` varies, one thing at a time, and from where."""

from dataclasses import dataclass

# Latency rules at 10 ms, so that neither two cores nor their load decide what is measured.
_BASE: dict[str, int | str] = {
    "--node-count": 5,
    "--concurrency": "2n",
    "--rate": 1000,
    "--latency": 10,
}
# A long key needs many sends: one key, and no latency to slow them down.
_ONE_KEY: dict[str, int | str] = {**_BASE, "--key-count": 1, "--rate": 10_000, "--latency": 0}


@dataclass(frozen=True, slots=True)
class Slope:
    """One plot: the bench's flag `flag` takes each of `values` (with `suffix`) on top of `base`.

    `longer` names values whose runs last so many times the usual. `measured_x`, if any, is the figure to
    draw against instead of the value: what a run reached rather than what it was allowed.
    """

    name: str
    title: str
    axis: str
    flag: str
    values: tuple[int, ...]
    base: dict[str, int | str]
    suffix: str = ""
    longer: tuple[tuple[int, int], ...] = ()
    measured_x: str | None = None

    def case(self, value: int) -> str:
        """The name of a point in the records."""
        return f"{self.name}={value}"

    def flags(self, value: int) -> tuple[str, ...]:
        """The bench's flags at a point."""
        chosen = self.base | {self.flag: f"{value}{self.suffix}"}
        return tuple(str(word) for pair in chosen.items() for word in pair)

    def stretch(self, value: int) -> int:
        """How many times the usual time the runs of a point last."""
        return dict(self.longer).get(value, 1)


SLOPES = (
    Slope(
        "nodes",
        "Nodes (2 clients each, rate 1000, latency 10 ms)",
        "nodes",
        "--node-count",
        (1, 2, 5, 10, 16, 25),
        _BASE,
    ),
    Slope(
        "clients",
        "Clients per node (5 nodes, rate 1000, latency 10 ms)",
        "clients per node",
        "--concurrency",
        (1, 2, 5, 10, 20, 50),
        _BASE,
        suffix="n",
    ),
    Slope(
        "keys",
        "Keys at a time (5 nodes, 2n, rate 1000, latency 10 ms)",
        "keys at a time",
        "--key-count",
        (1, 10, 100, 1000, 10_000),
        _BASE,
    ),
    Slope(
        "messages",
        "Messages per key (5 nodes, 2n, one key, rate 10 000, no latency)",
        "messages of the longest key",
        "--max-writes-per-key",
        (16, 256, 4096, 100_000),
        _ONE_KEY,
        longer=((100_000, 10),),
        measured_x="longest_key_messages",
    ),
)
