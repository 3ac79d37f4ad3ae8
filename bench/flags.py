"""The command line of `test`: one click option for each flag of the real tool, and our own."""

import re
from collections.abc import Callable
from typing import Any

import click

from bench.nemesis.partition import REAL_SHAPES, SHAPES
from bench.nemesis.targets import MIXED, TARGET_WORDS
from runs.faults.names import FAULTS

LATENCIES = ("constant", "uniform", "exponential")
TOPOLOGIES = ("line", "grid", "total", "tree", "tree2", "tree3", "tree4")
_POSITIVE = click.IntRange(min=1)
_Check = Callable[[click.Context, click.Parameter, Any], Any]


def _comma_list(known: tuple[str, ...]) -> _Check:
    def parse(_context: click.Context, _flag: click.Parameter, text: str) -> tuple[str, ...]:
        names = tuple(name for name in re.split(r"\s*,\s*", text.strip()) if name)
        if unknown := sorted(set(names) - set(known)):
            raise click.BadParameter(f"{', '.join(unknown)}: must be one of {', '.join(known)}.")
        return tuple(dict.fromkeys(names))

    return parse


def _faults(context: click.Context, flag: click.Parameter, text: str) -> tuple[str, ...]:
    words = {"all": ",".join(FAULTS), "none": ""}
    faults: tuple[str, ...] = _comma_list(FAULTS)(context, flag, words.get(text, text))
    return faults


def _shapes(context: click.Context, flag: click.Parameter, text: str) -> tuple[str, ...]:
    shapes: tuple[str, ...] = _comma_list(tuple(SHAPES))(context, flag, text)
    if not shapes:
        raise click.BadParameter("name at least one shape.")
    return shapes


def _any_comma_list(_context: click.Context, _flag: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(re.split(r"\s*,\s*", text))


def _availability(
    _context: click.Context, _flag: click.Parameter, text: str | None
) -> str | float | None:
    if text is None or text == "total":
        return text
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction <= 1:
        raise click.BadParameter("must be 'total' or a number between 0 and 1.")
    return fraction


def _concurrency(_context: click.Context, _flag: click.Parameter, text: str) -> str:
    if not re.fullmatch(r"\d+n?", text):
        raise click.BadParameter("must be an integer, optionally followed by n (per node).")
    return text


def _above_zero(_context: click.Context, _flag: click.Parameter, number: float) -> float:
    if number <= 0:
        raise click.BadParameter("must be positive.")
    return number


TEST_FLAGS: list[Callable[..., Any]] = [
    click.argument("args", nargs=-1, type=click.UNPROCESSED),
    click.option("--bin", required=True, help="The program that runs one node."),
    click.option("-w", "--workload", default="lin-kv", show_default=True),
    click.option("--node-count", type=_POSITIVE, help="How many nodes: n0, n1, ..."),
    click.option("-n", "--node", multiple=True, help="A node's name; may be repeated."),
    click.option("--nodes", help="Names of the nodes, separated by commas."),
    click.option("--nodes-file", type=click.Path(exists=True, dir_okay=False)),
    click.option(
        "--concurrency",
        default="1n",
        show_default=True,
        callback=_concurrency,
        help="How many clients at a time; 2n is two per node.",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(min=0),
        default=5.0,
        show_default=True,
        help="Operations per second, about.",
    ),
    click.option(
        "--time-limit",
        type=click.IntRange(min=1),
        default=60,
        show_default=True,
        help="Seconds of the main phase.",
    ),
    click.option(
        "--latency",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Mean latency between nodes and services, in ms.",
    ),
    click.option(
        "--latency-dist", type=click.Choice(LATENCIES), default="constant", show_default=True
    ),
    click.option(
        "--nemesis",
        default="",
        callback=_faults,
        help=f"Faults, separated by commas: {', '.join(FAULTS)}; or all (docs/faults.md).",
    ),
    click.option(
        "--nemesis-interval",
        type=float,
        default=10,
        show_default=True,
        callback=_above_zero,
        help="Mean seconds between faults.",
    ),
    click.option(
        "--nemesis-targets",
        type=click.Choice(TARGET_WORDS),
        default=MIXED,
        show_default=True,
        help="Which nodes a fault takes; partitions have shapes instead. (ours)",
    ),
    click.option(
        "--partition-shapes",
        default=",".join(REAL_SHAPES),
        show_default=True,
        callback=_shapes,
        help=f"Shapes of partitions, separated by commas: {', '.join(SHAPES)}. (ours)",
    ),
    click.option("--key-count", type=_POSITIVE, help="How many keys at a time."),
    click.option("--max-writes-per-key", type=_POSITIVE, default=16, show_default=True),
    click.option("--max-txn-length", type=_POSITIVE, default=4, show_default=True),
    click.option(
        "--availability",
        callback=_availability,
        help="Fraction of operations that must succeed: total, or 0 to 1.",
    ),
    click.option("--consistency-models", default="strict-serializable", callback=_any_comma_list),
    click.option("--topology", type=click.Choice(TOPOLOGIES), default="grid"),
    click.option("--log-stderr", is_flag=True, help="Show what nodes log."),
    click.option("--log-net-send", is_flag=True, help="Show messages as they are sent."),
    click.option("--log-net-recv", is_flag=True, help="Show messages as they are received."),
    click.option("--leave-db-running", is_flag=True, help="Accepted; nodes stop with the bench."),
    click.option("--logging-json", is_flag=True, hidden=True),
    click.option("--no-ssh", is_flag=True, hidden=True),
    click.option("--username", hidden=True),
    click.option("--password", hidden=True),
    click.option("--strict-host-key-checking", is_flag=True, hidden=True),
    click.option("--ssh-private-key", hidden=True),
    click.option(
        "--test-count", type=_POSITIVE, default=1, show_default=True, help="Run so many tests."
    ),
    click.option(
        "--store", default="results", show_default=True, help="Where runs are kept. (ours)"
    ),
    click.option("--seed", help="The same seed gives the same operations and faults. (ours)"),
    click.option(
        "--recovery-time",
        type=click.FloatRange(min=0),
        default=10,
        show_default=True,
        help="Seconds between the last fault and the final phase. (ours)",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Also require that every node hands out every acknowledged message. (ours)",
    ),
    click.option(
        "--engine",
        type=click.Choice(("embedded", "jepsen")),
        help="This bench, or the real Maelstrom that MAELSTROM names. (ours)",
    ),
]


def test_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command with all flags of `test`."""
    for flag in reversed(TEST_FLAGS):
        command = flag(command)
    return command


def flags_by_word() -> dict[str, click.Option]:
    """Every flag of `test` by each of its words: `-w` and `--workload` are one."""
    command = click.command()(test_flags(lambda: None))
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {word: option for option in options for word in option.opts}
