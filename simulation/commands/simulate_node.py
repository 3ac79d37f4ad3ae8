"""`./maelstrom simulate --bin NODE`: a stranger's node on the virtual clock, a run for each seed."""

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from bench.commands.test import Test, run_test
from bench.failure import EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from bench.glomers import Simulated
from bench.options import FLAGS, TestOptions, from_flags, test_flags
from bench.run import RunResult
from bench.terminal import Console
from bench.verdict.checkers import judge
from bench.verdict.judgement import Judgement
from bench.verdict.printing import VALUE_WIDTH as WIDTH
from bench.verdict.wording import complaints
from runs.facts import mapping
from runs.files import HISTORY, JOURNAL, NODE_LOGS
from runs.house import MAELSTROM
from runs.operations import operation_count
from runs.sweeps import CRASHED, INVALID, UNKNOWN, VALID
from runs.writing import LineFile
from simulation.lock_step import SILENCE_NS, LockStepRun, difference, is_on_the_python_kit, run_of
from simulation.options import as_words
from simulation.pool import spread
from simulation.strangers import NotSimulated
from workloads.interface import Workload

HASHES = "PYTHONHASHSEED"  # two processes with another one go through a set in another order
SEEDS_OF_A_SIZE, SEEDS_OF_THE_LAST = 40, 200  # that are tried for a smaller run
SEEDS_IN_LOCK_STEP = 10, 40  # the same, where each life of a node is a process
FEW = (2, 4, 6, 8, 12, 20, 40)  # operations that are asked for in a smaller run
PARTS = (8, 4, 2)  # the part of the time of a run, if all those are too few
NAMED = ("bin", "workload", "nodes", "args")  # in every command


@dataclass(frozen=True)
class Seed:
    """What the run of a seed showed. `verdict`: valid, unknown, crashed, or what is wrong; `why` says it."""

    options: TestOptions
    verdict: str
    why: str
    operations: int
    digest: str


@click.command("simulate")
@click.option("--seeds", type=click.IntRange(min=1), help="Run so many seeds: 0, 1, 2, ...")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes for --seeds; one a core.")
@click.option("--shrink", is_flag=True, help="Make a run with few operations that fails alike.")
@test_flags
def simulate_node(*, seeds: int | None, jobs: int | None, shrink: bool, **flags: Any) -> None:
    """Simulate --bin on a virtual clock: a Python node on the kit in this process, any other in lock step.

    All else is as in `maelstrom test`. The same seed gives the same run of a node on a kit; of another it is
    tried. Exit status: 0 valid, 1 wrong in some seed, 2 unknown, 254 bad arguments, 255 crashed.
    """
    chosen, console = options_of(flags), Console()
    if os.environ.get(HASHES) != "0":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {HASHES: "0"})
    if seeds is None:
        status = run_test(chosen, console, partial(SimulatedTest, argv=words_of(chosen)))
        found = [run_seed(chosen)] if shrink and status else []
    else:
        found = run_seeds(chosen, seeds, jobs or os.cpu_count() or 1)
        status = tell(found, console)
    wrong = next((each for each in found if each.verdict not in (VALID, UNKNOWN)), None)
    first = wrong.options if wrong else replace(chosen, seed="0" if seeds else chosen.seed)
    told = doubts(first)
    for doubt in told:
        console.print(doubt, markup=False, soft_wrap=True)
    if shrink and wrong and told:
        console.print("So no smaller run is looked for.")
    elif shrink and wrong:
        small = smallest(wrong)
        console.print(
            f"The smallest run that shows it: {command_of(small.options)}",
            markup=False,
            soft_wrap=True,
        )
        run_test(small.options, console, partial(SimulatedTest, argv=words_of(small.options)))
    sys.exit(status)


def options_of(flags: Mapping[str, Any]) -> TestOptions:
    """Make options of what the command line gave; `click.UsageError` for what no simulated run has."""
    for name in ("engine", "junit", "store_server"):
        if flags[name]:
            raise click.UsageError(f"{FLAGS[name].words[0]}: not of a simulated run.")
    return from_flags(flags)


class SimulatedTest(Test):
    """A test whose nodes are simulated; its folder is that of any other. `argv`: what makes it again."""

    def __init__(self, *args: Any, argv: Sequence[str]) -> None:
        super().__init__(*args)
        self.test_json["argv"] = argv

    def _perform(self) -> tuple[Workload, RunResult]:
        files = (LineFile(self.run_dir / name) for name in (HISTORY, JOURNAL))
        run = run_of(self.chosen, *files, logs=self.run_dir / NODE_LOGS)
        outcome = run.execute()
        self.console.print(f"digest: {run.digest}", highlight=False)
        return run.workload, outcome


def run_seed(options: TestOptions) -> Seed:
    """One run in memory, and its verdict."""
    run = run_of(options)
    outcome = run.execute()
    found = judge(outcome, options, run.workload)
    return Seed(options, *_verdict(found), operation_count(outcome.history), run.digest)


def _verdict(found: Judgement) -> tuple[str, str]:
    if wrong := next((each for each in found.findings if each.invalidating), None):
        return wrong.type, wrong.sentence
    if found.unfinished:
        return CRASHED, found.unfinished
    checks = {str(name): mapping(each).get("valid?") for name, each in found.results.items()}
    if wrong_checks := [name for name, valid in checks.items() if valid is False]:
        # No journal was kept to find the reasons in.
        told = ({**mapping(found.results[name]), "reasons": {}} for name in wrong_checks)
        return wrong_checks[0], " ".join(text for each in told for text in complaints(each, WIDTH))
    return (VALID, "") if found.results["valid?"] is True else (UNKNOWN, "")


def doubts(options: TestOptions) -> list[str]:
    """Why a run of a node in lock step may not come again: it has no kit, or two runs differ."""
    if is_on_the_python_kit(Path(options.bin)):
        return []
    journals, without_kit = [], ""
    for _ in range(2):
        run = LockStepRun(options, keep=True)
        run.execute()
        journals.append(run.journal_file.content)
        without_kit = without_kit or run.without_kit
    told = (
        f"Node {without_kit} does not say when it is quiet, as a node on a kit does;"
        f" {SILENCE_NS // 10**6} ms without a word count as that." * bool(without_kit),
        difference(options.seed, journals),
    )
    return [each for each in told if each]


def run_seeds(chosen: TestOptions, count: int, jobs: int) -> list[Seed]:
    """The seeds from 0 on, in their order, over processes."""
    all_of_them = (replace(chosen, seed=str(number)) for number in range(count))
    made = spread(run_seed, all_of_them, jobs)
    with click.progressbar(made, length=count, label="seeds", file=sys.stderr) as bar:
        return sorted(bar, key=lambda each: int(each.options.seed))


def simulated(options: TestOptions, count: int) -> Simulated | str:
    """What seeds of a challenge's check come to; a sentence if the node cannot be simulated."""
    try:
        short = replace(options, seed="0", time_limit_s=min(options.time_limit_s, 1))
        if why_not := doubts(short):
            return " ".join(why_not)
        with patch.dict(os.environ, {HASHES: "0"}):  # of the processes that are spawned
            found = run_seeds(options, count, os.cpu_count() or 1)
            bad = (each for each in found if each.verdict not in (VALID, UNKNOWN))
            wrong = sorted(bad, key=lambda each: each.verdict == CRASHED)
            small = list(spread(smallest, wrong[:1], 1))
        if why_not := [text for each in small for text in doubts(each.options)]:
            return " ".join(why_not)
    except NotSimulated as error:
        return str(error)
    right = sum(each.verdict == VALID for each in found)
    for run in small:
        return Simulated(
            CRASHED if run.verdict == CRASHED else INVALID,
            right,
            count,
            len(wrong),
            run.verdict,
            run.operations,
            command_of(run.options),
        )
    return Simulated(VALID if right == count else UNKNOWN, right, count)


def tell(found: Sequence[Seed], console: Console) -> int:
    """Say on how many seeds the node is wrong, and how to see the first of each kind; the exit status."""
    kinds = Counter(each.verdict for each in found)
    for kind in kinds:
        if kind != VALID:
            first = next(each for each in found if each.verdict == kind)
            console.print(
                f"✘ {kind}: {kinds[kind]} of {len(found)} seeds. {first.why}",
                markup=False,
                soft_wrap=True,
            )
            console.print(f"  to see it: {command_of(first.options)}", markup=False, soft_wrap=True)
    wrong = sum(count for kind, count in kinds.items() if kind not in (VALID, UNKNOWN))
    unknown = f", {kinds[UNKNOWN]} unknown" if kinds[UNKNOWN] else ""
    said = f"✘ wrong on {wrong}" if wrong else f"✔ right on {kinds[VALID]}"
    console.print(f"{said} of {len(found)} seeds{unknown}", markup=False, soft_wrap=True)
    if wrong > kinds[CRASHED]:
        return EXIT_INVALID
    if wrong:
        return EXIT_CRASHED
    return EXIT_UNKNOWN if unknown else EXIT_VALID


def smallest(wrong: Seed) -> Seed:
    """A run with few operations that shows the same anomaly: the smallest size that does, its best seed."""
    few, many = SEEDS_OF_A_SIZE, SEEDS_OF_THE_LAST
    if not is_on_the_python_kit(Path(wrong.options.bin)):
        few, many = SEEDS_IN_LOCK_STEP
    for options in sizes(wrong.options):
        if any(each.verdict == wrong.verdict for each in _seeds(options, few)):
            seeds = _seeds(options, many)
            alike = (each for each in seeds if each.verdict == wrong.verdict)
            return min([wrong, *alike], key=lambda each: each.operations)
    return wrong


def _seeds(options: TestOptions, count: int) -> Iterator[Seed]:
    return (run_seed(replace(options, seed=str(number))) for number in range(count))


def sizes(options: TestOptions) -> Iterator[TestOptions]:
    """Smaller runs of the same node, the smallest first: fewer operations, nodes, faults, less time."""
    counts = sorted({min(count, len(options.nodes)) for count in (1, 2, 3, len(options.nodes))})
    for few in FEW:
        for count in counts:
            for nemesis in dict.fromkeys(((), options.nemesis)):
                seconds = min(options.time_limit_s, 4 if nemesis else 1)
                yield replace(
                    options,
                    nodes=options.nodes[:count],
                    concurrency=count,
                    rate=few / seconds,
                    time_limit_s=seconds,
                    nemesis=nemesis,
                    nemesis_interval_s=min(options.nemesis_interval_s, 1.0),
                )
    for part in PARTS:
        yield replace(options, time_limit_s=max(1, int(options.time_limit_s / part)))


def words_of(options: TestOptions) -> list[str]:
    """The arguments of `./maelstrom` that make a run again."""
    numbered = tuple(f"n{number}" for number in range(len(options.nodes)))
    count: dict[str, Any] = {"node_count": len(numbered)}
    usual = {
        each.name: FLAGS[each.name].default or each.default
        for each in fields(TestOptions)
        if each.name not in NAMED
    }
    given = {name: getattr(options, name) for name in usual}
    unusual = {name: value for name, value in given.items() if value not in (None, usual[name])}
    nodes = count if options.nodes == numbered else {"nodes": options.nodes}
    program = ["simulate", "--bin", os.path.relpath(options.bin), "-w", options.workload]
    arguments = ["--", *options.args] if options.args else []
    return [*program, *as_words(nodes | unusual, FLAGS), *arguments]


def command_of(options: TestOptions) -> str:
    """The command that makes a run again."""
    return shlex.join([MAELSTROM, *words_of(options)])
