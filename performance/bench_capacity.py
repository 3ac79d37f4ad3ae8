"""Find the rate at which the bench itself limits the latency of a trivial node.

    .venv/bin/python performance/bench_capacity.py [--ask-lin-kv] [--nodes 25] [--seconds 5]
    [RATE...]

Runs the echo workload on `nodes/bare_echo.py` at rising rates and prints, for each: the rate asked
for and reached, the latency of an echo (median, 99th percentile), and the bench's own CPU time,
per message and as a share of one core. It has headroom while the rate is reached and the latency
stays that of a quiet bench. `--ask-lin-kv` makes it four messages an operation, two of them
through a service.
"""

import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import workloads  # noqa: E402 - the project is not installed
from bench.hosts.processes import ProcessHosts  # noqa: E402
from bench.loop import RealLoop  # noqa: E402
from bench.options import TestOptions  # noqa: E402
from bench.run import Outcome, Run  # noqa: E402

RATES = (1_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000)


class Unwatched:
    """Shows nothing."""

    def phase(self, name: str) -> None:
        pass

    def trace(self, event: str, message: bytes) -> None:
        pass


def run(options: TestOptions, folder: Path) -> tuple[Outcome, float]:
    """One run; returns also the bench's CPU seconds."""
    loop = RealLoop()
    whole = Run(
        options,
        lambda setting: workloads.build(options.workload, setting),
        loop,
        lambda on_line, on_failure: ProcessHosts(
            loop,
            options.nodes,
            command=[sys.executable, options.bin, *options.args],
            log_dir=folder,
            on_line=on_line,
            on_failure=on_failure,
        ),
        history_file=(folder / "history.jsonl").open("wb"),
        journal_file=(folder / "net-journal.jsonl").open("wb"),
        watcher=Unwatched(),
    )
    began = time.process_time()
    outcome = whole.execute()
    cpu_s = time.process_time() - began
    loop.close()
    if outcome.failure:
        raise outcome.failure
    return outcome, cpu_s


def latencies_ms(outcome: Outcome) -> list[float]:
    """The latency of every echo, in order of size."""
    invoked: dict[int | str, int] = {}
    found = []
    for op in outcome.history:
        if op.type == "invoke":
            invoked[op.process] = op.time
        elif op.type == "ok":
            found.append((op.time - invoked[op.process]) / 1e6)
    return sorted(found)


@click.command()
@click.argument("rates", nargs=-1, type=int)
@click.option("--ask-lin-kv", is_flag=True)
@click.option("--nodes", default=1)
@click.option("--clients", default=100)
@click.option("--seconds", default=5)
def main(rates: tuple[int, ...], ask_lin_kv: bool, nodes: int, clients: int, seconds: int) -> None:
    table = Table(
        "asked /s", "reached /s", "messages /s", "p50 ms", "p99 ms", "CPU µs/message", "core"
    )
    for rate in rates or RATES:
        options = TestOptions(
            workload="echo",
            bin=str(ROOT / "performance/nodes/bare_echo.py"),
            args=("--ask-lin-kv",) if ask_lin_kv else (),
            nodes=tuple(f"n{number}" for number in range(nodes)),
            concurrency=clients,
            rate=rate,
            time_limit_s=seconds,
            seed="capacity",
        )
        with tempfile.TemporaryDirectory() as folder:
            outcome, cpu_s = run(options, Path(folder))
        taken = latencies_ms(outcome)
        messages = outcome.network.clients.sent + outcome.network.servers.sent
        table.add_row(
            f"{rate:,}",
            f"{len(taken) / seconds:,.0f}",
            f"{messages / seconds:,.0f}",
            f"{taken[len(taken) // 2]:.2f}",
            f"{taken[len(taken) * 99 // 100]:.2f}",
            f"{cpu_s / messages * 1e6:.1f}",
            f"{cpu_s / seconds:.0%}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
