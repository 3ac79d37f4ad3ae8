"""`./maelstrom demo`: the example nodes, one after another, through the bench."""

import shlex
import sys

import click

from bench import options
from bench.commands.test import run_test, test
from bench.failure import EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from bench.terminal import Console
from runs.house import EXAMPLES, MAELSTROM

_ALL = ("--time-limit", "5", "--rate", "50", "--nemesis", "partition", "--nemesis-interval", "2")
_TOTAL = ("--availability", "total")
DEMOS = {
    "echo": _TOTAL,
    "unique-ids": _TOTAL,
    "broadcast": _TOTAL,
    "g-set": _TOTAL,
    "g-counter": _TOTAL,
    "pn-counter": _TOTAL,
    "txn-list-append": _TOTAL,
    "txn-rw-register": (*_TOTAL, "--consistency-models", "read-committed"),
}
_WORDS = {EXIT_VALID: "✔ VALID", EXIT_INVALID: "✘ INVALID", EXIT_UNKNOWN: "? UNKNOWN"}
_WORST = (EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="The nodes are in workloads/examples; docs/bench/glomers.md says how they work.",
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF test]")
def demo(flags: tuple[str, ...]) -> None:
    """Run each example node on its workload, five seconds each under partitions, and tell all verdicts.

    Options of `test` count for all of them: maelstrom demo --time-limit 2 --latency 10. Exit status: that of
    the worst.
    """
    console = Console()
    statuses = {}
    for workload, own in DEMOS.items():
        program = str(EXAMPLES / f"{workload.replace('-', '_')}.py")
        words = ["-w", workload, "--bin", program, *_ALL, *own, *flags]
        console.print(f"\n{shlex.join([MAELSTROM, 'test', *words])}", style="bold", soft_wrap=True)
        statuses[workload] = run_test(
            options.from_flags(test.make_context("demo", words).params), console
        )
        if statuses[workload] == EXIT_UNKNOWN:
            break  # stopped by the user, or by options that ask for too little
    console.print()
    for workload, status in statuses.items():
        console.print(f"{_WORDS.get(status, '✘ not finished'):14} {workload}", highlight=False)
    sys.exit(next(status for status in _WORST if status in statuses.values()))
