"""A verdict for people: what went wrong in a sentence, the few operations that show it, and a last line."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench import net
from bench.failure import RunFailure, clip, indent
from bench.options import TestOptions
from bench.run import RunResult
from bench.verdict.glossary import where
from bench.verdict.judgement import Judgement
from bench.verdict.last_line import last_line
from bench.verdict.silence import Pipes
from bench.verdict.wording import complaints, left_out, repeated
from runs import edn
from runs.facts import grouped, mapping, spaced
from runs.faults import listed
from runs.figures import Figures
from runs.files import NODE_LOGS
from runs.history import NEMESIS, NS, Op, error_text
from runs.oddities import oddities
from runs.operations import operation_count
from workloads.interface import Finding, Placement

VALUE_WIDTH = 160
_RATE_TOLERANCE = 0.05  # of what was asked for
_MARKS = {True: ("✘", "bold red"), False: ("?", "bold yellow")}  # certainly wrong, or not
_ERRORS = 3  # of nodes: so many are shown
# Errors of services and of compare-and-sets that lose a race, which need not mean anything.
_USUAL = ("key-does-not-exist", "key-already-exists", "precondition-failed", "txn-conflict")
# Checks other than the workload's own.
_OWN = ("exceptions", "stats", "availability", "net", "answers", "names")


def print_verdict(
    console: Console,
    run_dir: Path,
    judgement: Judgement,
    outcome: RunResult,
    options: TestOptions,
    *,
    figures: Figures | None = None,
) -> None:
    """Print the verdict for a person, ending with one line that says it all and where the rest is.

    `figures` are those of the run, if it could be measured.
    """
    findings, results, judge = judgement.findings, judgement.results, judgement.judge
    if outcome.failure:
        print_failure(console, outcome.failure)
    # What is certain comes first, then why something failed, and what could not be judged for that reason.
    render([each for each in findings if each.invalidating], console, place=judgement.place)
    print_failed(results, console)
    render([each for each in findings if not each.invalidating], console, place=judgement.place)
    answers = results.get("answers", {})
    if answers.get("valid?"):  # nodes answered again, where that is allowed
        _noted(
            console,
            "answers",
            f"{' '.join(repeated(answers))} Clients take the first, as those of the real Maelstrom do without a"
            " word. Each request has one answer, which goes to the client that asked. --strict refuses this.",
        )
    if shown := results.get("messages"):
        _noted(console, "messages", "\n".join(shown))
    print_lines_not_heard(console, outcome.history, outcome.network.hearing.dropped)
    if _went_wrong(results, outcome):
        print_errors(console, outcome.pipes, run_dir / NODE_LOGS, str(outcome.failure or ""))
    is_counted = judge.figures and "error" not in judgement.result
    lines = [
        f"\n{_figures(results, outcome.history)}",
        *([] if outcome.failure or not figures else _missed_rate(figures, options)),
        *([judge.figures(judgement.result)] if judge.figures and is_counted else []),
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    odd = oddities(figures, len(options.nodes)) if figures else []
    for line in odd:
        console.print(Text(line, style="yellow"), soft_wrap=True)
    last = last_line(results, findings, outcome, is_odd=bool(odd or shown))
    console.print(last, markup=False, highlight=False)
    if findings:
        console.print(where(), highlight=False, soft_wrap=True)
    console.print(f"Results: {run_dir}", highlight=False, soft_wrap=True)


def _noted(console: Console, what: str, text: str) -> None:
    console.print(Text(f"• {what}", style="bold yellow"))
    console.print(_indented(text))
    console.print()


def print_lines_not_heard(
    console: Console, history: Sequence[Op], dropped: Mapping[str, int]
) -> None:
    """Print which nodes were mute and why, and how many lines of each a lenient bench dropped."""
    if text := net.report(history):
        _noted(console, "mute", text)
    for node, count in sorted(dropped.items()):
        console.print(
            f"{count} lines of {node} were dropped (--lenient); the real Maelstrom would not have"
            " heard the node after the first of them.",
            highlight=False,
        )


def _went_wrong(results: Mapping[Any, Any], outcome: RunResult) -> bool:
    """Whether anything failed or had no answer, but for what services refuse in any run."""
    errors = (
        error_text(op) for op in outcome.history if op.process != NEMESIS and "error" in op.extra
    )
    return results["valid?"] is not True or any(not each.startswith(_USUAL) for each in errors)


def print_errors(console: Console, pipes: Mapping[str, Pipes], logs: Path, already: str) -> None:
    """Print the last error on the stderr of each node, the same one once; none that is told `already`."""
    named = ((each.error.certain or each.error.text, node) for node, each in pipes.items())
    told = [nodes for name, nodes in grouped(named).items() if name and name not in already]
    for nodes in told[:_ERRORS]:
        error = f"{indent(pipes[nodes[0]].error.text)}\n  All of it: {logs / nodes[0]}.log"
        console.print(Text(f"• last error on stderr of {listed(nodes)}", style="bold yellow"))
        console.print(Text(error), soft_wrap=True)


def print_failure(console: Console, failure: RunFailure) -> None:
    headline = "Stopped early" if failure.interrupted else "The run could not be finished"
    console.print(headline, style="bold red")
    console.print(str(failure), markup=False, highlight=False, soft_wrap=True)


def _figures(results: Mapping[Any, Any], history: Sequence[Op]) -> str:
    """One line with the operations of a run, how they ended, and its messages."""
    stats, count = Counter(results["stats"]), operation_count(history)
    crashes = mapping(mapping(results["stats"].get("by-f")).get("crash")).get("count", 0)
    ends = {
        "failed": stats["fail-count"],
        "of unknown outcome": stats["info-count"] - crashes,
        f"client crash{'es' * (crashes > 1)} that the workload asks for": crashes,
        "under way when the run stopped": count - stats["count"],
    }
    told = ", ".join(f"{spaced(number)} {end}" for end, number in ends.items() if number)
    among = f" ({told})" if told else ""
    per_op = mapping(results["net"].get("servers")).get("msgs-per-op", 0.0)
    requests = results.get("store", {}).get("requests-per-op")
    store = "" if requests is None else f", {requests:.2f} store requests"
    return f"{spaced(count)} operations{among}, {per_op:.2f} server messages{store} an operation"


def _missed_rate(figures: Figures, options: TestOptions) -> Iterator[str]:
    """Say which rate was asked for and reached, if fewer operations were made than chance explains."""
    asked = options.rate * options.time_limit_s
    made_hz = figures.numbers.get("invoked_ops_per_s") or 0.0
    if asked - made_hz * options.time_limit_s > max(_RATE_TOLERANCE * asked, 2 * sqrt(asked)):
        wanted, made = spaced(options.rate, "g"), spaced(made_hz, ".0f")
        yield (
            f"{wanted} operations a second were asked for, {made} were made: a client"
            " waits for an answer before it asks again (--concurrency gives more clients)"
        )


def render(
    findings: Sequence[Finding],
    console: Console,
    rest: str = "results.edn, under :workload",
    place: Placement | None = None,
) -> None:
    """Print every finding, the invalidating ones first.

    `rest` says where further instances can be found; `place` names the node of each process, where it is known.
    """
    for finding in sorted(findings, key=lambda each: not each.invalidating):
        _print_finding(finding, console, rest, place)


def print_failed(results: Mapping[Any, Any], console: Console) -> None:
    """Print the checks other than the workload's own that did not pass, each with what it says."""
    for name in (name for name in _OWN if results.get(name, {}).get("valid?", True) is not True):
        mark, style = _MARKS[results[name]["valid?"] is False]
        console.print(Text(f"{mark} {name}", style=style))
        for sentence in complaints(results[name], VALUE_WIDTH):
            console.print(_indented(sentence))


def _print_finding(finding: Finding, console: Console, rest: str, place: Placement | None) -> None:
    mark, style = ("•", "bold yellow") if _allowed(finding) else _MARKS[finding.invalidating]
    note = ", allowed" if _allowed(finding) else ", so far" if finding.unsettled else ""
    console.print(Text(f"{mark} {finding.type} ({finding.count}{note})", style=style))
    # A sentence may quote megabytes of a node, which take minutes to be wrapped.
    console.print(_indented(clip(finding.sentence)))
    if finding.unsettled:
        console.print(_indented("The run stopped before its end, which alone can tell."))
    if finding.circumstances:
        console.print(_indented(finding.circumstances, style="italic"))
    if finding.witness:
        console.print(_table(finding.witness, place))
    if finding.count > 1:
        more = Text(f"  {finding.count - 1} more: see {rest} :{finding.type}", style="dim")
        console.print(more, soft_wrap=True)  # a path that is cut in two cannot be copied
    console.print()


def _allowed(finding: Finding) -> bool:
    return not (finding.invalidating or finding.unsettled or finding.undecided)


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 2))


def _table(witness: Sequence[Op], place: Placement | None) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True, header_style="dim")
    for column in ("index", "time/s", "process"):
        table.add_column(column, justify="right", no_wrap=True)
    if place:
        table.add_column("node", no_wrap=True)
    table.add_column("operation", no_wrap=True)
    table.add_column("value", overflow="fold")
    for op in sorted(witness, key=lambda each: each.index):
        value = edn.dumps(op.value)
        shown = value if len(value) <= VALUE_WIDTH else f"{value[:VALUE_WIDTH]} …"
        node = [place.node(op.process) if isinstance(op.process, int) else ""] if place else []
        cells = (f"{op.index}", f"{op.time / NS:.6f}", f"{op.process}", *node)
        table.add_row(*map(Text, (*cells, f"{op.type} {op.f}", shown + left_out(op))))
    return table
