"""`./maelstrom check`: judge histories, ours or the real tool's, without running anything."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from bench import verdict
from bench.verdict import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from runs import edn
from runs.history import HistoryError, Op, find_history, read_history
from runs.keyword import keywords
from workloads.kafka.checker import check as check_kafka
from workloads.kafka.checker import error_count, explain

EXIT_BAD_ARGUMENTS = 254
_STATUS = {True: EXIT_VALID, False: EXIT_INVALID}
_WORDS = {True: "✔ VALID", False: "✘ INVALID"}


@dataclass(frozen=True)
class Judgement:
    """A file as it was named, its history, and the verdict of the checker."""

    file: str
    history: Sequence[Op]
    result: Mapping[Any, Any]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "form", flag_value="json", help="Print one JSON object a file.")
@click.option("--edn", "form", flag_value="edn", help="Print everything, as results.edn has it.")
@click.option("--strict", is_flag=True, help="Ask every node for every acknowledged message.")
@click.option("--concurrency", type=click.IntRange(1), help="Workers of the run, for --strict.")
@click.option("--node-count", type=click.IntRange(1), help="Nodes of the run, for --strict.")
def check(files: tuple[str, ...], form: str | None, **options: Any) -> None:
    """Judge kafka histories: EDN or JSON lines, gzipped or not, or the folder of a run.

    --strict takes nodes and concurrency from the run's test.json, or from its two options.
    Exit status: 0 all are valid, 1 one is invalid, 2 one is unknown, 254 a file cannot be read.
    """
    statuses = {EXIT_VALID}
    for file in files:
        try:
            judgement = _judge(file, options)
        except (HistoryError, click.UsageError) as error:
            click.echo(f"{file}: not judged. {error}", err=True)
            statuses.add(EXIT_BAD_ARGUMENTS)
        else:
            _PRINT[form](judgement)
            statuses.add(_STATUS.get(judgement.result["valid?"], EXIT_UNKNOWN))
    order = (EXIT_BAD_ARGUMENTS, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID)
    sys.exit(next(status for status in order if status in statuses))


def _judge(file: str, options: Mapping[str, Any]) -> Judgement:
    path = find_history(Path(file))
    checked = _strict_options(path, options) if options["strict"] else {}
    history = read_history(path)
    return Judgement(file, history, check_kafka(history, checked))


def _strict_options(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    recorded = path.with_name("test.json")
    try:
        test = json.loads(recorded.read_text()) if recorded.exists() else {}
    except ValueError:
        test = {}
    count, concurrency = options["node_count"], options["concurrency"]
    nodes = [f"n{number}" for number in range(count)] if count else test.get("nodes")
    concurrency = concurrency or test.get("concurrency")
    if not nodes or not concurrency:
        raise click.UsageError(
            f"--strict needs to know which process talked to which node, and {recorded} does not say."
            " Give --node-count and --concurrency."
        )
    return {"strict": True, "nodes": nodes, "concurrency": concurrency}


def _print_json(judgement: Judgement) -> None:
    result = judgement.result
    errors = {str(each): error_count(each, result[each]) for each in result["error-types"]}
    bad = list(map(str, result["bad-error-types"]))
    valid = result["valid?"]
    line = {"file": judgement.file, "valid": valid, "bad": bad, "errors": errors}
    click.echo(json.dumps(line))


def _print_edn(judgement: Judgement) -> None:
    content = keywords(file=judgement.file, workload=judgement.result)
    click.echo(edn.dumps(content, pretty=True))


def _print_text(judgement: Judgement) -> None:
    console = Console()
    findings = verdict.with_circumstances(
        explain(judgement.result, judgement.history), judgement.history
    )
    results = keywords(workload=judgement.result)
    console.print(Text(judgement.file, style="bold"), soft_wrap=True)
    verdict.render(results, findings, console, rest=" ".join(_rest(judgement)))
    verdict.print_lines_not_heard(console, judgement.history, {})
    console.print(_summary(judgement), highlight=False, markup=False)


def _rest(judgement: Judgement) -> Iterator[str]:
    beside = find_history(Path(judgement.file)).with_name("results.edn")
    yield str(beside) if beside.exists() else f"`./maelstrom check --edn {judgement.file}`"
    yield "under :workload"


def _summary(judgement: Judgement) -> str:
    word = _WORDS.get(judgement.result["valid?"], "? UNKNOWN: it ends before the final polls")
    bad = ", ".join(judgement.result["bad-error-types"])
    operations = sum(op.type == "invoke" for op in judgement.history)
    return f"{word}{': ' * bool(bad)}{bad} ({operations} operations)\n"


_PRINT = {None: _print_text, "json": _print_json, "edn": _print_edn}
