"""The options of `test`: the flags, defaults and checks of the real tool, and a few of our own."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from bench.nemesis.partition import REAL_SHAPES
from bench.nemesis.targets import MIXED

DEFAULT_NODES = ("n1", "n2", "n3", "n4", "n5")
SERVICE_NAMES = ("lin-kv", "lin-tso", "lww-kv", "seq-kv")


@dataclass(frozen=True, slots=True)
class TestOptions:
    """A checked set of options; times in the unit that the name ends with."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    workload: str
    bin: str
    args: tuple[str, ...]
    nodes: tuple[str, ...]
    concurrency: int
    rate: float
    time_limit_s: float
    seed: str
    latency_ms: int = 0
    latency_dist: str = "constant"
    nemesis: tuple[str, ...] = ()
    nemesis_interval_s: float = 10
    nemesis_targets: str = MIXED
    partition_shapes: tuple[str, ...] = REAL_SHAPES
    recovery_time_s: float = 10
    key_count: int | None = None
    max_writes_per_key: int = 16
    max_txn_length: int = 4
    availability: str | float | None = None
    consistency_models: tuple[str, ...] = ("strict-serializable",)
    topology: str = "grid"
    log_stderr: bool = False
    log_net_send: bool = False
    log_net_recv: bool = False
    leave_db_running: bool = False
    test_count: int = 1
    strict: bool = False
    store: str = "results"

    def as_dict(self) -> dict[str, Any]:
        """As written to test.json and given to workloads and checkers."""
        return asdict(self)


def from_flags(flags: Mapping[str, Any]) -> TestOptions:
    """Make options of what the command line gave, or raise `click.UsageError` saying what to do."""
    nodes = _nodes(flags)
    return TestOptions(
        workload=flags["workload"],
        bin=_program(flags["bin"]),
        args=tuple(flags["args"]),
        nodes=nodes,
        concurrency=_concurrency(flags["concurrency"], len(nodes)),
        rate=flags["rate"],
        time_limit_s=flags["time_limit"],
        seed=flags["seed"] or secrets.token_hex(4),
        latency_ms=flags["latency"],
        latency_dist=flags["latency_dist"],
        nemesis=flags["nemesis"],
        nemesis_interval_s=flags["nemesis_interval"],
        nemesis_targets=flags["nemesis_targets"],
        partition_shapes=flags["partition_shapes"],
        recovery_time_s=flags["recovery_time"],
        key_count=flags["key_count"],
        max_writes_per_key=flags["max_writes_per_key"],
        max_txn_length=flags["max_txn_length"],
        availability=flags["availability"],
        consistency_models=flags["consistency_models"],
        topology=flags["topology"],
        log_stderr=flags["log_stderr"],
        log_net_send=flags["log_net_send"],
        log_net_recv=flags["log_net_recv"],
        leave_db_running=flags["leave_db_running"],
        test_count=flags["test_count"],
        strict=flags["strict"],
        store=flags["store"],
    )


def _nodes(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes' names: by count, else from a list, a file and single flags together, else n1..n5."""
    if flags["node_count"]:
        return tuple(f"n{number}" for number in range(flags["node_count"]))
    listed = re.split(r",\s*", flags["nodes"]) if flags["nodes"] else []
    in_file = Path(flags["nodes_file"]).read_text().split() if flags["nodes_file"] else []
    nodes = (*in_file, *listed, *flags["node"]) or DEFAULT_NODES
    for name in nodes:
        if not re.fullmatch(r"[\w.-]+", name) or name in SERVICE_NAMES or re.match(r"c\d+$", name):
            raise click.UsageError(
                f"--nodes: {name!r} cannot name a node. Use letters, digits, '.', '-', '_', and not"
                " the name of a client (c0, c1, ...) or a service (lin-kv, ...)."
            )
    if len(set(nodes)) < len(nodes):
        raise click.UsageError(f"--nodes: each name once, please, not {', '.join(nodes)}.")
    return nodes


def _concurrency(text: str, node_count: int) -> int:
    number, per_node = text.removesuffix("n"), text.endswith("n")
    concurrency = int(number) * (node_count if per_node else 1)
    if concurrency < 1:
        raise click.UsageError("--concurrency must be at least 1, or 1n for one worker per node.")
    return concurrency


def _program(path: str) -> str:
    """The program's absolute path: nodes run in another folder."""
    program = Path(path).absolute()
    if not program.exists():
        raise click.UsageError(f"--bin: there is no file {program}. Give the path to your node.")
    if program.is_dir():
        raise click.UsageError(f"--bin: {program} is a folder. Give the path to your node.")
    return str(program)
