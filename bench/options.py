"""The options of `test`, each declared once: the real tool's flags and defaults, and a few of our own.

From the declarations follow the command line, the record of a run (`test.json`), what a sweep may vary
(`bench.sweep.axes`), what the real tool is not given (`bench.engine`), and the part of a simulated scenario
that the bench has too (`simulation.scenario`).
"""

import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import click

import workloads
from bench.flags import (
    COUNT,
    NATURAL,
    NOT_NEGATIVE,
    POSITIVE,
    Flag,
    OneOf,
    Parsed,
    click_options,
    flags_of,
    names_of,
    with_words,
)
from bench.nemesis.fault import MIXED, TARGET_WORDS
from bench.nemesis.partitions import REAL_SHAPES, SHAPES
from bench.net import ARRIVALS, IN_TURN
from bench.stores.names import checked
from runs.facts import EMBEDDED, JEPSEN
from runs.faults import FAULTS
from runs.traffic import SERVICES
from workloads import mixes
from workloads.txn import models

DISTRIBUTIONS = ("constant", "uniform", "exponential")
# Of the real tool, on two cores: `init` reached its nodes within 2 ms (2 nodes), 11 (3), 17 and 25 (5).
START_SPREAD_MS = 6
_A_NUMBER = "write `nodes`, a number"


def _availability(text: str) -> str | float:
    if text == "total":
        return text
    try:
        part, _, whole = text.partition("/")  # the real tool takes fractions, too
        fraction = float(part) / float(whole or 1)
    except (ValueError, ZeroDivisionError):
        fraction = -1.0
    if not 0 <= fraction <= 1:
        raise ValueError(f"{text}: must be total, or a number from 0 to 1, such as 0.5 or 1/2.")
    return fraction


def _workers(text: str) -> str:
    if not re.fullmatch(r"\d+n?", text):
        raise ValueError("must be an integer, optionally followed by n (per node).")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOptions:
    """A checked set of options; a name ends with the unit of its value."""

    __test__ = False  # pytest takes a class of this name for a test case

    workload: Annotated[
        str,
        Flag(
            f"What clients do: {', '.join(workloads.NAMES)}.",
            OneOf(workloads.NAMES),
            words=("-w", "--workload"),
        ),
    ] = "lin-kv"
    bin: Annotated[str, Flag("The program that runs one node.", required=True)]
    args: tuple[str, ...] = ()
    name: Annotated[
        str | None,
        Flag(
            "What lists and reports call the program: by default its file, or our node's strategy, with"
            " its other arguments.",
            ours=True,
            axis="program",
        ),
    ] = None
    nodes: Annotated[
        tuple[str, ...],
        Flag("Names of the nodes, separated by commas.", click.STRING, unswept=_A_NUMBER),
    ]
    concurrency: Annotated[
        int,
        Flag(
            "How many clients at a time; 2n is two per node.",
            Parsed("number", _workers),
            default="1n",
        ),
    ]
    rate: Annotated[float, Flag("Operations per second, about.", NOT_NEGATIVE)] = 5.0
    time_limit_s: Annotated[float, Flag("How long the main phase lasts.", COUNT)] = 60
    seed: Annotated[str, Flag("The same seed gives the same operations and faults.", ours=True)]
    latency_ms: Annotated[int, Flag("Mean latency between nodes and services.", NATURAL)] = 0
    latency_dist: Annotated[str, Flag("How latencies are distributed.", OneOf(DISTRIBUTIONS))] = (
        "constant"
    )
    arrival: Annotated[
        str,
        Flag(
            "Messages arrive in turn, as on the real tool, or each when it is due.",
            OneOf(ARRIVALS),
            ours=True,
        ),
    ] = IN_TURN
    start_spread_ms: Annotated[
        float,
        Flag(
            "Each node starts at a time from 0 to this for each node; 0: all at once.",
            NOT_NEGATIVE,
            default=START_SPREAD_MS,
            ours=True,
        ),
    ] = 0
    nemesis: Annotated[
        tuple[str, ...],
        Flag(
            f"Faults, separated by commas: {', '.join(FAULTS)}; or all, or none (docs/bench/faults.md).",
            names_of(FAULTS),
            axis="faults",
        ),
    ] = ()
    nemesis_interval_s: Annotated[
        float, Flag("Mean time between faults.", POSITIVE, axis="fault-interval")
    ] = 10
    nemesis_targets: Annotated[
        str,
        Flag(
            "Which nodes a fault affects; partitions have shapes instead.",
            OneOf(TARGET_WORDS),
            ours=True,
            axis="fault-targets",
        ),
    ] = MIXED
    partition_shapes: Annotated[
        tuple[str, ...],
        Flag(
            f"Shapes of partitions, separated by commas: {', '.join(SHAPES)}.",
            names_of(tuple(SHAPES), some=True),
            ours=True,
        ),
    ] = REAL_SHAPES
    recovery_time_s: Annotated[
        float, Flag("From the last fault to the final phase.", NOT_NEGATIVE, ours=True)
    ] = 10
    key_count: Annotated[int | None, Flag("How many keys at a time.", COUNT, axis="keys")] = None
    max_writes_per_key: Annotated[int, Flag("A key with so many is replaced.", COUNT)] = 16
    max_txn_length: Annotated[int, Flag("Reads and writes of a transaction at most.", COUNT)] = 4
    availability: Annotated[
        str | float | None,
        Flag(
            "Fraction of operations that must succeed: total, or 0 to 1 (0.5 or 1/2).",
            Parsed("fraction", _availability),
        ),
    ] = None
    key_dist: Annotated[
        str,
        Flag("Which keys transactions draw.", OneOf(tuple(mixes.DISTRIBUTIONS)), ours=True),
    ] = mixes.DEFAULT_KEY_DIST
    consistency_models: Annotated[
        tuple[str, ...],
        Flag(
            f"What transactions must keep, separated by commas: {', '.join(models.NAMES)}.",
            names_of(models.NAMES, some=True),
        ),
    ] = models.DEFAULT_MODELS
    topology: Annotated[
        str,
        Flag(
            "Which neighbours nodes are given, if the workload does so.",
            OneOf(tuple(mixes.TOPOLOGIES)),
        ),
    ] = "grid"
    log_stderr: Annotated[bool, Flag("Show what nodes log.")] = False
    log_net_send: Annotated[bool, Flag("Show messages as they are sent.")] = False
    log_net_recv: Annotated[bool, Flag("Show messages as they are received.")] = False
    leave_db_running: Annotated[
        bool,
        Flag("Accepted; nodes stop with the bench.", unswept="nodes stop with their run"),
    ] = False
    test_count: Annotated[
        int,
        Flag("Run so many tests.", COUNT, unswept="write `repetitions` at the top of the file"),
    ] = 1
    strict: Annotated[
        bool,
        Flag(
            "Refuse what the real tool lets pass, such as a node that lacks acknowledged messages"
            " (docs/bench/workloads.md).",
            ours=True,
        ),
    ] = False
    node_memory_max_mib: Annotated[
        int | None,
        Flag(
            "Memory of one node at most. Without it, all nodes together get 3/4 of what is free.",
            COUNT,
            ours=True,
        ),
    ] = None
    lenient: Annotated[
        bool,
        Flag("Drop lines with a wrong name or of a wrong form, and count them.", ours=True),
    ] = False
    no_pictures: Annotated[
        bool,
        Flag("Draw no pictures of the run: a short one takes less than half the CPU.", ours=True),
    ] = False
    store_server: Annotated[
        str | None,
        Flag(
            "A real store for the nodes, which get --store: moto, etcd, sqlite, or a URL"
            " (docs/bench/stores-under-the-bench.md).",
            Parsed("server", checked),
            ours=True,
        ),
    ] = None
    store: Annotated[
        str,
        Flag(
            "The folder in which runs are stored.",
            ours=True,
            unswept="the sweep decides where its runs are; give --store to `maelstrom sweep`",
        ),
    ] = "results"

    def as_dict(self) -> dict[str, Any]:
        """As written to test.json and given to workloads and checkers."""
        return asdict(self)


# Flags that are no option of a run: other ways to name nodes, the engine, and what the real tool needs for ssh.
_OTHER_FLAGS = {
    "node_count": Flag("How many nodes: n0, n1, ...", COUNT, axis="nodes"),
    "node": Flag(
        "A node's name; may be repeated.",
        words=("-n", "--node"),
        multiple=True,
        unswept=_A_NUMBER,
    ),
    "nodes_file": Flag(
        "A file with a node's name on each line.",
        click.Path(exists=True, dir_okay=False),
        unswept=_A_NUMBER,
    ),
    "engine": Flag(
        "This bench, or the real Maelstrom that MAELSTROM names.",
        OneOf((EMBEDDED, JEPSEN)),
        ours=True,
    ),
    "junit": Flag(
        "Write a JUnit XML file with a test case for each run (docs/bench/ci.md).",
        click.Path(dir_okay=False, path_type=Path),
        ours=True,
        unswept="give --junit to `maelstrom sweep` itself",
    ),
    "logging_json": Flag(kind=click.BOOL, hidden=True),
    "no_ssh": Flag(kind=click.BOOL, hidden=True),
    "username": Flag(hidden=True),
    "password": Flag(hidden=True),
    "strict_host_key_checking": Flag(kind=click.BOOL, hidden=True),
    "ssh_private_key": Flag(hidden=True),
}
FLAGS = flags_of(TestOptions) | {
    name: with_words(name, flag) for name, flag in _OTHER_FLAGS.items()
}
_DEFAULTS = {each.name: each.default for each in fields(TestOptions) if each.default is not MISSING}


def junit_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command with `--junit`, as `report`."""
    flag = FLAGS["junit"]
    return click.option(*flag.words, "report", type=flag.kind, help=flag.help)(command)


def test_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command with the arguments for the node and all flags of `test`."""
    command = click_options(FLAGS, _DEFAULTS)(command)
    return click.argument(
        "args", nargs=-1, type=click.UNPROCESSED, metavar="[-- OPTIONS OF THE NODE]"
    )(command)


def from_flags(flags: Mapping[str, Any]) -> TestOptions:
    """Make options of what the command line gave, or raise `click.UsageError` saying what to do."""
    nodes = _nodes(flags)
    made = {
        "bin": program_at(flags["bin"]),
        "nodes": nodes,
        "concurrency": _concurrency(flags["concurrency"], len(nodes)),
        "seed": flags["seed"] or secrets.token_hex(4),
    }
    return TestOptions(**{each.name: flags[each.name] for each in fields(TestOptions)} | made)


def _nodes(flags: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes' names: by count, else from a list, a file and single flags together, else n1..n5."""
    if flags["node_count"]:
        return tuple(f"n{number}" for number in range(flags["node_count"]))
    listed = re.split(r",\s*", flags["nodes"]) if flags["nodes"] else []
    in_file = Path(flags["nodes_file"]).read_text().split() if flags["nodes_file"] else []
    nodes = (*in_file, *listed, *flags["node"]) or ("n1", "n2", "n3", "n4", "n5")
    for name in nodes:
        if not re.fullmatch(r"[\w.-]+", name) or name in SERVICES or re.match(r"c\d+$", name):
            raise click.UsageError(
                f"--nodes: {name!r} cannot name a node. Use letters, digits, '.', '-', '_', and not"
                " the name of a client (c0, c1, ...) or a service (lin-kv, ...)."
            )
    if len(nodes) == 1 and nodes[0].isdigit():
        raise click.UsageError(
            f"--nodes: takes names with commas between them, got {nodes[0]}. For {nodes[0]} nodes, give"
            f" --node-count {nodes[0]}."
        )
    if len(set(nodes)) < len(nodes):
        raise click.UsageError(f"--nodes: give each name once, not {', '.join(nodes)}.")
    return nodes


def _concurrency(text: str, node_count: int) -> int:
    number, per_node = text.removesuffix("n"), text.endswith("n")
    concurrency = int(number) * (node_count if per_node else 1)
    if concurrency < 1:
        raise click.UsageError("--concurrency must be at least 1, or 1n for one worker per node.")
    return concurrency


class OfNode(click.Command):
    """A command with `--bin` that takes the node's arguments after `--`, and no word before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, which takes any word for an argument of the node."""
        after = len(args) - args.index("--") - 1 if "--" in args else 0
        rest = super().parse_args(ctx, args)
        if before := ctx.params["args"][: len(ctx.params["args"]) - after]:
            line = " ".join([str(ctx.params.get("bin") or ctx.params.get("program")), *before])
            names = [f"Give -w {word}." for word in before if word in workloads.NAMES]
            raise click.UsageError(f"--bin {line}: {' '.join(names) or _instead(line)}", ctx)
        return rest


def program_at(path: str) -> str:
    """The program's absolute path, because nodes run in another folder (`click.UsageError` without one)."""
    program = Path(path).absolute()
    if not program.exists():
        raise click.UsageError(f"--bin: there is no file {program}. {_instead(path)}")
    if program.is_dir():
        raise click.UsageError(f"--bin: {program} is a folder. Give the path to your node.")
    return str(program)


def _instead(path: str) -> str:
    """What to give in place of a path at which no file is."""
    interpreter, *words = path.split() or [path]
    script = next((each for each in words if Path(each).is_file()), None)
    runs_it = not Path(interpreter).is_file() or shutil.which(Path(interpreter).name)
    if script and runs_it:
        return (
            f"It takes one program, without arguments. Give --bin {script}, made executable (chmod +x"
            f" {script}) and with a first line such as #!/usr/bin/env {Path(interpreter).name}, or a script"
            " that starts your node. Arguments of the node stand after `--`."
        )
    if words:
        node = f"--bin {interpreter} -- {' '.join(words)}"
        return f"It takes one program. Arguments of the node stand after `--`: {node}"
    if "/" not in path and (found := shutil.which(path)):
        return f"It takes a path, and {path} is {found}. Give the path to your node itself."
    return "Give the path to your node."
