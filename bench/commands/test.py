"""`./maelstrom test`: run one test, judge it, and exit with the verdict."""

import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.text import Text

import workloads
from bench import engine, options
from bench.cluster import OnFailure, OnLine
from bench.failure import EXIT_CRASHED, EXIT_INVALID, RunFailure, unwritable
from bench.loop import RealLoop
from bench.node_memory import limit_of
from bench.options import FLAGS, OfNode, TestOptions, test_flags
from bench.processes import Own, ProcessHosts
from bench.run import BenchRun, RunResult, random_streams
from bench.stores.names import missing
from bench.system import allow_open_files, handled, sigterm_as_interrupt
from bench.terminal import Console
from bench.verdict import kept, last_line, printing
from bench.verdict.checkers import judge
from bench.watchers import Progress
from runs.facts import FINISHED, OWN_NODES, command_line
from runs.files import HISTORY, JOURNAL, NODE_LOGS, OPTIONS
from runs.house import HOUSE, MAELSTROM
from runs.operations import operation_count
from runs.reading import PICTURE_BYTES, Bad, Budget, TooLarge, journal
from runs.store import Folder, create_run_dir, utc_now
from runs.sweeps import Row, verdict_of
from runs.traffic import Event
from runs.writing import LineFile
from workloads.interface import Workload

if TYPE_CHECKING:  # real stores take a client of HTTP, and most runs have none
    from bench.stores.run_store import RunStore

CONNECTIONS = 64  # of a node to a real store, and as many from the proxy to it
OWN_PROGRAMS = {HOUSE / name for name in OWN_NODES}
OWN_WORKLOAD = "kafka"


@click.command(cls=OfNode)
@test_flags
def test(**flags: Any) -> None:
    """Run a test of --bin and judge it.

    What follows `--` are arguments for the program. Exit status: 0 valid, 1 invalid, 2 unknown,
    254 bad arguments, 255 crashed: the run could not be finished, and shows nothing that is certainly wrong.
    """
    report: Path | None = flags["junit"]
    console = Console(record=report is not None)
    real = engine.choose(flags["engine"], dict(os.environ))
    if real and report:
        raise click.UsageError("--junit of a run on the real Maelstrom: give it to a sweep.")
    if real:
        engine.refuse_our_faults(flags)
        console.print(f"engine: the real Maelstrom, {real}", highlight=False)
        sys.stdout.flush()
        os.execv(real, [str(real), *engine.real_arguments(sys.argv[1:])])
    chosen = options.from_flags(flags)
    console.print(f"engine: embedded (seed {chosen.seed})", highlight=False)
    warn_of_own_node(chosen.bin, chosen.workload, console)
    if chosen.leave_db_running:
        console.print("--leave-db-running: nodes live on the bench's pipes and stop with it")
    for word in (flag.words[-1] for name, flag in FLAGS.items() if flag.hidden and flags[name]):
        console.print(f"{word}: changes nothing here, where nodes are processes of this machine")
    source = click.get_current_context().get_parameter_source("workload")
    status, runs = 0, list[tuple[str, Row, str]]()
    for number in range(1, chosen.test_count + 1):
        # The same seed again would give the same operations and faults.
        seed, began = chosen.seed if number == 1 else f"{chosen.seed}-{number}", time.monotonic()
        status = run_test(replace(chosen, seed=seed), console)
        if status and source == ParameterSource.DEFAULT:
            told = f"No -w was given, so the workload was {chosen.workload}, as with the real tool."
            known = f"There are {', '.join(workloads.NAMES)}."
            console.print(Text(f"{told} {known}", style="yellow"), soft_wrap=True)
        if status:
            console.print(Text(f"To repeat it: {command_line(sys.argv[1:], seed)}"), soft_wrap=True)
        if report:
            took_s = time.monotonic() - began
            row = Row(chosen.workload, {}, verdict=verdict_of(status), seconds=took_s)
            runs.append((f"seed {seed}", row, console.export_text()))
        if status:
            break
    if report:
        from bench.sweep.table import case_of, write_junit  # what most runs do not need

        write_junit(report, chosen.workload, [case_of(*each) for each in runs])
    sys.exit(status)


def warn_of_own_node(program: str, workload: str, console: Console) -> None:
    """Say before the run that the project's own node serves no such workload."""
    if workload != OWN_WORKLOAD and Path(program).resolve() in OWN_PROGRAMS:
        console.print(
            f"{Path(program).name} serves the workload {OWN_WORKLOAD} alone, so it will refuse the requests"
            f" of {workload}. Give -w {OWN_WORKLOAD}, or another program with --bin.",
            style="yellow",
            highlight=False,
            markup=False,
        )


def run_test(
    chosen: TestOptions, console: Console, kind: "Callable[..., Test] | None" = None
) -> int:
    """One test with these options, from its folder to its verdict. Returns the exit status.

    `kind`: what performs it, if not `Test`.
    """
    started = utc_now()
    progress = Progress(console)
    try:
        if lack := missing(chosen.store_server):
            raise RunFailure(lack)
        allow_open_files(len(chosen.nodes) * (CONNECTIONS if chosen.store_server else 1))
        run_dir = create_run_dir(Path(chosen.store), chosen.workload, started)
        test_json = kept.describe_test(chosen, started)
        kept.write_json(run_dir / OPTIONS, test_json)
        return (kind or Test)(chosen, console, progress, run_dir, test_json).run()
    except (RunFailure, OSError) as error:
        store = f"The store {chosen.store}"
        known = error if isinstance(error, RunFailure) else unwritable(store, error)
        printing.print_failure(console, known)
        return EXIT_CRASHED
    finally:
        progress.close()


@dataclass
class Test:
    """One test that has a folder; `test_json` is what its test.json holds."""

    chosen: TestOptions
    console: Console
    progress: Progress
    run_dir: Path
    test_json: dict[str, Any]
    store: "RunStore | None" = None

    def run(self) -> int:
        """Run it and judge it. Returns the exit status."""
        workload, outcome = self._perform()
        self.test_json |= {
            "history_origin_ns": outcome.history_origin_ns,
            "node_cpu_s": self.progress.cpu.used_s,
            FINISHED: outcome.failure is None,
        }
        with sigterm_as_interrupt():
            return self._judge(workload, outcome)

    def _judge(self, workload: Workload, outcome: RunResult) -> int:
        """Judge a finished run and print the verdict, even when the disk has no room for it."""
        chosen, console, run_dir = self.chosen, self.console, self.run_dir
        unkept: RunFailure | None = None
        self.progress.phase("judging the history")
        try:
            with suppress(OSError):  # said below, with the verdict
                kept.write_json(run_dir / OPTIONS, self.test_json)
            store = self.store.result(operation_count(outcome.history)) if self.store else None
            found = judge(outcome, chosen, workload, self._messages, store)
            try:
                kept.write_json(run_dir / OPTIONS, self.test_json)
                kept.write_results(run_dir, found)
            except OSError as error:
                unkept = unwritable(f"What belongs to this verdict, in {run_dir},", error)
        except KeyboardInterrupt:
            raise RunFailure(
                f"Stopped before there was a verdict. The history is kept; to judge it later:\n"
                f"  {MAELSTROM} check {shlex.quote(str(run_dir))}",
                interrupted=True,
            ) from None
        figures = None
        if outcome.history and not unkept:
            if not chosen.no_pictures:
                self.progress.phase("drawing")
                kept.draw(console, run_dir, outcome.history, self.test_json, found.findings)
            self.progress.phase("measuring")
            figures = kept.keep(self._folder, found)
        self.progress.close()
        printing.print_verdict(console, run_dir, found, outcome, chosen, figures=figures)
        if unkept:
            printing.print_failure(console, unkept)
            return EXIT_INVALID if found.results["valid?"] is False else EXIT_CRASHED
        return last_line.exit_status(found.results, outcome.failure)

    def _messages(self) -> Iterator[Event]:
        """The journal of the run, up to a size that can be read while a person waits."""
        with suppress(TooLarge, OSError):
            yield from journal(self._folder.journal, Bad(), Budget(PICTURE_BYTES))

    @property
    def _folder(self) -> Folder:
        return Folder(self.run_dir, self.run_dir.name)

    def _perform(self) -> tuple[Workload, RunResult]:
        """Run the test, on a store of its own if one is asked for."""
        with closing(RealLoop()) as loop, ExitStack() as stack:
            if self.chosen.store_server is not None:
                self.store = self._store(self.chosen.store_server, loop, stack)
            return self._perform_on(loop)

    def _store(self, name: str, loop: RealLoop, stack: ExitStack) -> "RunStore":
        """The store that `--store-server` names, started if need be."""
        from bench.stores.run_store import RunStore, store_server

        self.progress.phase(f"starting the store ({name})")
        stack.enter_context(sigterm_as_interrupt())
        try:
            server = stack.enter_context(store_server(name, self.run_dir))
        except KeyboardInterrupt:
            raise RunFailure("The run was stopped before it began.", interrupted=True) from None
        random = random_streams(self.chosen.seed)("store")
        return stack.enter_context(closing(RunStore(server, loop, self.chosen.nodes, random)))

    def _perform_on(self, loop: RealLoop) -> tuple[Workload, RunResult]:
        chosen, store = self.chosen, self.store

        def make_hosts(on_line: OnLine, on_failure: OnFailure) -> ProcessHosts:
            hosts = ProcessHosts(
                loop,
                chosen.nodes,
                command=[chosen.bin, *chosen.args],
                log_dir=self.run_dir / NODE_LOGS,
                on_line=on_line,
                on_failure=on_failure,
                echo_stderr=chosen.log_stderr,
                memory=limit_of(chosen.node_memory_max_mib),
                own=store.own if store else lambda _node: Own(),
            )
            self.progress.cpu.pids = hosts.pids
            return hosts

        run = BenchRun(
            chosen,
            lambda setting: workloads.build(chosen.workload, setting),
            loop,
            make_hosts,
            history_file=LineFile(self.run_dir / HISTORY),
            journal_file=LineFile(self.run_dir / JOURNAL),
            watcher=self.progress,
            real_store=store,
        )
        self.progress.attach(loop, run)
        with _stop_on_signal(loop, run):
            return run.workload, run.execute()


@contextmanager
def _stop_on_signal(loop: RealLoop, run: BenchRun) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run in order: nodes are stopped, what there is is kept and judged."""
    reader, writer = socket.socketpair()
    for end in (reader, writer):
        end.setblocking(False)

    def stop(number: int, _frame: object) -> None:
        name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        run.fail(RunFailure(f"The run was stopped by {name}.", interrupted=True))

    loop.watch(reader.fileno(), lambda: reader.recv(64), None)
    with reader, writer, handled(signal.SIGINT, stop), handled(signal.SIGTERM, stop):
        old_fd = signal.set_wakeup_fd(writer.fileno())  # ends the loop's wait
        try:
            yield
        finally:
            signal.set_wakeup_fd(old_fd)
            loop.watch(reader.fileno(), None, None)
