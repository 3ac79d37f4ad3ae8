"""Find the rate at which the bench itself limits the latency of a trivial node.

    python -m performance.bench_capacity [--ask-lin-kv] [--nodes 25] [--seconds 5]
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
from dataclasses import replace
from pathlib import Path

import click

import workloads
from bench.loop import RealLoop
from bench.options import TestOptions
from bench.processes import ProcessHosts
from bench.run import BenchRun, RunResult, Watcher
from performance import ROOT, show_table
from runs.files import HISTORY, JOURNAL
from runs.operations import operations, quantile

TITLES = ("asked /s", "reached /s", "messages /s", "p50 ms", "p99 ms", "CPU µs/message", "core")
RATES = (1_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000)


def run(options: TestOptions, folder: Path) -> tuple[RunResult, float]:
    """One run; returns also the bench's CPU seconds."""
    loop = RealLoop()
    whole = BenchRun(
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
        history_file=(folder / HISTORY).open("wb"),
        journal_file=(folder / JOURNAL).open("wb"),
        watcher=Watcher(),
    )
    began = time.process_time()
    outcome = whole.execute()
    cpu_s = time.process_time() - began
    loop.close()
    if outcome.failure:
        raise outcome.failure
    return outcome, cpu_s


@click.command()
@click.argument("rates", nargs=-1, type=int)
@click.option("--ask-lin-kv", is_flag=True)
@click.option("--nodes", default=1)
@click.option("--clients", default=100)
@click.option("--seconds", default=5)
def main(rates: tuple[int, ...], ask_lin_kv: bool, nodes: int, clients: int, seconds: int) -> None:
    options = TestOptions(
        workload="echo",
        bin=str(ROOT / "performance/nodes/bare_echo.py"),
        args=("--ask-lin-kv",) if ask_lin_kv else (),
        nodes=tuple(f"n{number}" for number in range(nodes)),
        concurrency=clients,
        time_limit_s=seconds,
        seed="capacity",
    )
    show_table(TITLES, (row(replace(options, rate=rate)) for rate in rates or RATES))


def row(options: TestOptions) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        outcome, cpu_s = run(options, Path(folder))
    done = operations(outcome.history)
    taken_ms = sorted(each.latency_ns / 1e6 for each in done if each.outcome == "ok")
    messages = outcome.network.clients.sent + outcome.network.servers.sent
    return [
        f"{options.rate:,.0f}",
        f"{len(taken_ms) / options.time_limit_s:,.0f}",
        f"{messages / options.time_limit_s:,.0f}",
        f"{quantile(taken_ms, 0.5) or 0:.2f}",
        f"{quantile(taken_ms, 0.99) or 0:.2f}",
        f"{cpu_s / messages * 1e6:.1f}",
        f"{cpu_s / options.time_limit_s:.0%}",
    ]


if __name__ == "__main__":
    main()
