"""`./maelstrom check`: judge histories, ours or the real tool's, without running anything."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

import workloads
from bench import verdict
from bench.circumstances import with_circumstances
from bench.options import FLAGS
from bench.terminal import Console, say
from bench.verdict import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from runs import edn
from runs.facts import options_of, unfinished
from runs.files import OPTIONS, RESULTS
from runs.history import HistoryError, Op, find_history, plain, printable, read_cut_history
from runs.keyword import keywords
from runs.operations import operation_count
from workloads.interface import Finding, Placement
from workloads.recognition import candidates, operations

EXIT_BAD_ARGUMENTS = 254
PLACED = "kafka"  # the workload whose strict check asks which node a process talked to
_STATUS = {True: EXIT_VALID, False: EXIT_INVALID}
_WORDS = {True: "✔ VALID", False: "✘ INVALID"}


@dataclass(frozen=True)
class Judgement:
    """A file as it was named, its history, the verdict of the checker, and its sentences.

    `unfinished` says why the run did not come to its end, if it did not. `place` says which node a process
    asked, if the run's files do.
    """

    file: str
    history: Sequence[Op]
    result: Mapping[Any, Any]
    findings: Sequence[Finding]
    unfinished: str | None
    place: Placement | None

    @property
    def bad(self) -> list[str]:
        """The types of anomaly that make it invalid."""
        return [each.type for each in self.findings if each.invalidating]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-w",
    "--workload",
    type=click.Choice(workloads.NAMES),
    metavar="NAME",
    help=f"What the clients did: {', '.join(workloads.NAMES)}. [default: what the run's files, its folder or"
    " the operations say]",
)
@click.option(
    "--consistency-models",
    type=FLAGS["consistency_models"].kind,
    help="What transactions must keep. [default: as in the run's files]",
)
@click.option("--json", "form", flag_value="json", help="Print one JSON object a file.")
@click.option("--edn", "form", flag_value="edn", help="Print everything, as results.edn has it.")
@click.option(
    "--strict", is_flag=True, help="Refuse what the real tool lets pass (docs/workloads.md)."
)
@click.option("--concurrency", type=click.IntRange(1), help="Workers, for --strict of kafka.")
@click.option("--node-count", type=click.IntRange(1), help="Nodes, for --strict of kafka.")
def check(files: tuple[str, ...], form: str | None, **options: Any) -> None:
    """Judge histories: EDN or JSON lines, gzipped or not, or the folder of a run.

    A run that stopped before its end is unknown, unless it shows what no later operation can undo. For a
    history without its run, --json and --edn say what the real tool's checker says of it, as of a whole one.

    --strict of kafka takes nodes and concurrency from the run's test.json, or from its two options.
    Exit status: 0 all are valid, 1 one is invalid, 2 one is unknown, 254 a file cannot be read.
    """
    statuses = {EXIT_VALID}
    for file in files:
        try:
            judgement = _judge(file, options, form)
            _PRINT[form](judgement)
            statuses.add(_STATUS.get(judgement.result["valid?"], EXIT_UNKNOWN))
        except (HistoryError, click.UsageError) as error:
            statuses.add(_refused(file, str(error)))
        except (
            Exception
        ) as error:  # a checker takes what clients of a bench write, and a file holds anything
            why = f"its operations are none that a bench writes ({type(error).__name__}: {error})"
            statuses.add(
                _refused(file, f"{why}. Correct the file, or name another workload with -w")
            )
    order = (EXIT_BAD_ARGUMENTS, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID)
    sys.exit(next(status for status in order if status in statuses))


def _refused(file: str, why: str) -> int:
    say(f"{file}: not judged. {why}", err=True)
    return EXIT_BAD_ARGUMENTS


def _judge(file: str, options: Mapping[str, Any], form: str | None) -> Judgement:
    path = find_history(Path(file))
    recorded = options_of(path.parent) or {}
    history, is_torn = read_cut_history(path)
    name = options["workload"] or _workload(path, recorded, history)
    models = options["consistency_models"] or recorded.get("consistency_models")
    checked = {**recorded, "strict": options["strict"], "consistency_models": models}
    if options["strict"] and name == PLACED:
        checked |= _placement(path, recorded, options)
    judge = workloads.judge(name)
    result: Mapping[Any, Any] = judge.check(history, checked)
    has_results = any(path.with_name(each).exists() for each in RESULTS)
    known = unfinished(path.parent) or ("Its last line is torn." if is_torn else None)
    early = None if has_results else judge.stops_early(history)
    if known and history and not has_results and not early and result["valid?"] is True:
        known = None  # all was read before the bench was stopped
    why = known or (early if form is None else None)
    if why:
        result = judge.so_far(result, history)
    place = Placement.of(checked, history)
    findings = judge.findings(result, history, place, finished=not why)
    return Judgement(file, history, result, findings, why, place)


def _workload(path: Path, recorded: Mapping[str, Any], history: Sequence[Op]) -> str:
    """The workload by the run's options, by the folder in which both tools keep runs, or by what was done."""
    for name in (recorded.get("workload"), path.absolute().parent.parent.name):
        if name in workloads.NAMES:
            return str(name)
    found = candidates(history)
    if len(found) == 1:
        return found[0]
    done = ", ".join(sorted(operations(history)))
    why = f"Its operations ({done}) may be those of {', '.join(found)}."
    if not found:
        why = f"No workload has all of its operations ({done})."
    elif not done:
        why = "Its clients did nothing."
    raise click.UsageError(f"{why} Name the workload with -w.")


def _placement(
    path: Path, recorded: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    count, concurrency = options["node_count"], options["concurrency"]
    nodes = [f"n{number}" for number in range(count)] if count else recorded.get("nodes")
    concurrency = concurrency or recorded.get("concurrency")
    if not nodes or not concurrency:
        raise click.UsageError(
            "--strict needs to know which process talked to which node, and"
            f" {path.with_name(OPTIONS)} does not say. Give --node-count and --concurrency."
        )
    return {"nodes": nodes, "concurrency": concurrency}


def _print_json(judgement: Judgement) -> None:
    errors = {each.type: each.count for each in sorted(judgement.findings, key=_by_type)}
    valid = judgement.result["valid?"]
    line = {"file": judgement.file, "valid": valid, "bad": sorted(judgement.bad), "errors": errors}
    if judgement.unfinished:
        line["unfinished"] = judgement.unfinished
    line["workload"] = printable(judgement.result)
    say(json.dumps(line, default=plain))


def _by_type(finding: Finding) -> str:
    return finding.type


def _print_edn(judgement: Judgement) -> None:
    content = keywords(file=judgement.file, workload=judgement.result)
    say(edn.dumps(printable(content), pretty=True))


def _print_text(judgement: Judgement) -> None:
    console = Console()
    findings = with_circumstances(judgement.findings, judgement.history)
    console.print(Text(judgement.file, style="bold"), soft_wrap=True)
    rest = " ".join(_rest(judgement))
    verdict.render(findings, console, rest=rest, place=judgement.place)
    verdict.print_lines_not_heard(console, judgement.history, {})
    if judgement.unfinished:
        console.print(f"The run is not finished. {judgement.unfinished}", markup=False)
    console.print(_summary(judgement), highlight=False, markup=False)
    if findings:
        console.print(verdict.glossary(), highlight=False, markup=False, soft_wrap=True)
    console.print()


def _rest(judgement: Judgement) -> Iterator[str]:
    beside = find_history(Path(judgement.file)).with_name("results.edn")
    yield (
        str(beside)
        if beside.exists()
        else f"`./maelstrom check --edn {shlex.quote(judgement.file)}`"
    )
    yield "under :workload"


def _summary(judgement: Judgement) -> str:
    valid = judgement.result["valid?"]
    count = operation_count(judgement.history)
    if valid in _WORDS:
        bad = ", ".join(sorted(judgement.bad))
        told = f"{_WORDS[valid]}{': ' * bool(bad)}{bad}"
    else:
        told = f"? UNKNOWN: {_why_unknown(judgement)}"
    return f"{told} ({count} operations)"


def _why_unknown(judgement: Judgement) -> str:
    if judgement.unfinished:
        return verdict.so_far(judgement.findings, started=bool(judgement.history))
    return "nothing wrong was found, but not everything could be checked"


_PRINT = {None: _print_text, "json": _print_json, "edn": _print_edn}
