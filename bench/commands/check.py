"""`./maelstrom check`: judge histories, ours or the real tool's, without running anything."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click
from rich.text import Text

import workloads
from bench.failure import EXIT_BAD_ARGUMENTS, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from bench.flags import COUNT, OneOf
from bench.options import FLAGS
from bench.terminal import Console, say
from bench.verdict import glossary, last_line, printing
from bench.verdict.judgement import Judgement, judged
from runs import edn
from runs.history import HistoryError, find_history, keywords, plain, printable
from runs.house import MAELSTROM
from runs.operations import operation_count

_STATUS = {True: EXIT_VALID, False: EXIT_INVALID}
_WORDS = {True: "✔ VALID", False: "✘ INVALID"}


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-w",
    "--workload",
    type=OneOf(workloads.NAMES),
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
    "--strict", is_flag=True, help="Refuse what the real tool lets pass (docs/bench/workloads.md)."
)
@click.option("--concurrency", type=COUNT, help="Workers, for --strict of kafka.")
@click.option("--node-count", type=COUNT, help="Nodes, for --strict of kafka.")
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
            judgement = judged(Path(file), as_whole=form is not None, **options)
            _PRINT[form](file, judgement)
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


def _print_json(file: str, judgement: Judgement) -> None:
    errors = {
        each.type: each.count for each in sorted(judgement.findings, key=lambda each: each.type)
    }
    line = {
        "file": file,
        "valid": judgement.result["valid?"],
        "bad": sorted(judgement.bad),
        "errors": errors,
        **({"unfinished": judgement.unfinished} if judgement.unfinished else {}),
        "workload": printable(judgement.result),
    }
    say(json.dumps(line, default=plain))


def _print_edn(file: str, judgement: Judgement) -> None:
    say(edn.dumps(printable(keywords(file=file, workload=judgement.result)), pretty=True))


def _print_text(file: str, judgement: Judgement) -> None:
    console = Console()
    findings = judgement.findings
    console.print(Text(file, style="bold"), soft_wrap=True)
    beside = find_history(Path(file)).with_name("results.edn")
    rest = str(beside) if beside.exists() else f"`{MAELSTROM} check --edn {shlex.quote(file)}`"
    printing.render(findings, console, rest=f"{rest} under :workload", place=judgement.place)
    printing.print_lines_not_heard(console, judgement.history, {})
    if judgement.unfinished:
        console.print(f"The run is not finished. {judgement.unfinished}", markup=False)
    valid, bad = judgement.result["valid?"], ", ".join(sorted(judgement.bad))
    if judgement.unfinished:
        why = last_line.so_far(findings, started=bool(judgement.history))
    elif "nothing-asked" in judgement.result:
        why = last_line.NOTHING_ASKED
    else:
        why = "nothing wrong was found, but not everything could be checked"
    told = f"{_WORDS[valid]}{': ' * bool(bad)}{bad}" if valid in _WORDS else f"? UNKNOWN: {why}"
    count = operation_count(judgement.history)
    console.print(f"{told} ({count} operations)", highlight=False, markup=False)
    if findings:
        console.print(glossary.where(), highlight=False, markup=False, soft_wrap=True)
    console.print()


_PRINT = {None: _print_text, "json": _print_json, "edn": _print_edn}
