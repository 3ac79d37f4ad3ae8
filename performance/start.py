"""Measure what a node's start costs: CPU from exec to `init_ok`, and many nodes at once.

    python -m performance.start [--rounds 10] [--nodes 25]

CPU is the kernel's count for the process when it has answered, interpreter included; the lowest of the rounds
is the node's own, because other programs only add to it. Bytecode is compiled first, as `make setup` and every
install do.
"""

import compileall
import subprocess
import time

import click

from bench.watchers import process_cpu_s
from performance import ROOT, show_table
from performance.child import INIT, NODE, line

TITLES = ("start", "CPU of a node, ms (lowest)", "until the last init_ok, s (lowest)")


class Started:
    """A node that was started and has been sent `init`."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(NODE, stdin=pipe, stdout=pipe)
        assert self._process.stdin
        self._process.stdin.write(line("c0", INIT))
        self._process.stdin.flush()

    def wait(self) -> float:
        """Return when it has answered: the CPU seconds that it took so far."""
        assert self._process.stdout
        answer = self._process.stdout.readline()
        assert b"init_ok" in answer, answer
        return process_cpu_s(self._process.pid)

    def stop(self) -> None:
        """End it."""
        self._process.communicate()


def start(nodes: int) -> tuple[float, float]:
    """Start so many nodes at once: CPU seconds of one, and seconds until all have answered."""
    began_s = time.perf_counter()
    started = [Started() for _ in range(nodes)]
    cpu_s = min(node.wait() for node in started)
    took_s = time.perf_counter() - began_s
    for node in started:
        node.stop()
    return cpu_s, took_s


@click.command()
@click.option("--rounds", default=10, show_default=True)
@click.option("--nodes", default=25, show_default=True, help="How many start at once.")
def main(rounds: int, nodes: int) -> None:
    """Print a markdown table."""
    compileall.compile_dir(str(ROOT / "leaderless"), quiet=1)

    def rows() -> list[list[str]]:
        table = []
        for many in (1, nodes):
            cpu_s, took_s = zip(*(start(many) for _ in range(rounds)), strict=True)
            table.append([f"{many} at once", f"{1000 * min(cpu_s):.0f}", f"{min(took_s):.2f}"])
        return table

    show_table(TITLES, iter(rows()))


if __name__ == "__main__":
    main()
