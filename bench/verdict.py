"""A verdict for people: what went wrong in a sentence, the few operations that show it, and a last line."""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench import judgement, mute
from bench.checks import Answers, Availability, Check, Checks, Counts, NetStatistics, Stats
from bench.failure import RunFailure, clip
from bench.glossary import FILE as GLOSSARY
from bench.options import TestOptions
from bench.run import RunResult
from bench.why import listed
from runs import edn
from runs.history import Op
from runs.operations import operation_count
from workloads.interface import Finding, Placement, Workload

EXIT_VALID, EXIT_INVALID, EXIT_UNKNOWN, EXIT_CRASHED = 0, 1, 2, 255
_VALUE_WIDTH = 160
_NS = 1e9
_RATE_TOLERANCE = 0.05  # of what was asked for
_REPEATED = "Clients take the first, as those of the real Maelstrom do without a word. --strict refuses this."
_MARKS = {True: ("✘", "bold red"), False: ("?", "bold yellow")}  # certainly wrong, or not
# What a failed check says in sentences, or not at all.
_SAID = ("valid?", "by-f", "reasons", "repeated")


def print_verdict(
    console: Console,
    run_dir: Path,
    found: Checks,
    outcome: RunResult,
    workload: Workload,
    *,
    options: TestOptions,
    findings: Sequence[Finding] | None = None,
) -> None:
    """Print the verdict for a person, ending with one line that says it all and where the rest is.

    `findings` are those of `judgement.told`, if they are known already.
    """
    judged, place = found.workload, Placement.of(options.as_dict(), outcome.history)
    if findings is None:
        whole = outcome.failure is None
        findings = judgement.told(workload.judge, judged, outcome.history, place, finished=whole)
    render(findings, console, place=place)
    print_failed(found, console)
    print_repeated(found, console)
    print_lines_not_heard(console, outcome.history, outcome.network.hearing.dropped)
    if outcome.failure:
        if not findings:
            console.print()
        print_failure(console, outcome.failure)
    console.print(f"\n{_figures(found, outcome.history)}", highlight=False, soft_wrap=True)
    if not outcome.failure and (missed := _missed_rate(outcome.history, options)):
        console.print(missed, highlight=False, soft_wrap=True)
    if workload.judge.figures and "error" not in judged:
        console.print(workload.judge.figures(judged), highlight=False, soft_wrap=True)
    console.print(_last_line(found, findings, outcome), markup=False, highlight=False)
    if findings:
        console.print(glossary(), highlight=False, soft_wrap=True)
    console.print(f"Results: {run_dir}", highlight=False, soft_wrap=True)


def print_repeated(found: Checks, console: Console) -> None:
    """Print how often nodes answered again, where that is allowed."""
    if found.answers.repeated and found.answers.valid:
        console.print(Text("• answers", style="bold yellow"))
        told = " ".join(found.answers.sentences())
        console.print(_indented(f"{told} {_REPEATED}"))
        console.print()


def print_lines_not_heard(
    console: Console, history: Sequence[Op], dropped: Mapping[str, int]
) -> None:
    """Print which nodes were mute and why, and how many lines of each a lenient bench dropped."""
    if text := mute.report(history):
        console.print(Text("• mute", style="bold yellow"))
        console.print(_indented(text))
        console.print()
    for node, count in sorted(dropped.items()):
        console.print(
            f"{count} lines of {node} were dropped (--lenient); the real Maelstrom would not have"
            " heard the node after the first of them.",
            highlight=False,
        )


def glossary() -> str:
    """Where the names of anomalies are explained: a path from here, or a whole one."""
    here = Path.cwd()
    path = GLOSSARY.relative_to(here) if GLOSSARY.is_relative_to(here) else GLOSSARY
    return f"What the names mean: {path}"


def print_failure(console: Console, failure: RunFailure) -> None:
    headline = "Stopped early" if failure.interrupted else "The run could not be finished"
    console.print(headline, style="bold red")
    console.print(str(failure), markup=False, highlight=False, soft_wrap=True)


def exit_status(found: Checks, failure: RunFailure | None) -> int:
    """What the last line says, as the real tool's: 0 valid, 1 invalid, 2 unknown, 255 crashed.

    A run that crashed is invalid all the same if it shows what is certainly wrong.
    """
    if isinstance(found.valid, bool):
        return EXIT_VALID if found.valid else EXIT_INVALID
    return EXIT_CRASHED if failure and not failure.interrupted else EXIT_UNKNOWN


def _figures(found: Checks, history: Sequence[Op]) -> str:
    """One line with the operations of a run, how they ended, and its messages."""
    stats = found.stats if isinstance(found.stats, Stats) else Stats({})
    counts, count = stats.counts, operation_count(history)
    crashes = stats.by_f.get("crash", Counts()).all
    ends = {
        "failed": counts.fail,
        "of unknown outcome": counts.info - crashes,
        f"client crash{'es' * (crashes > 1)} that the workload asks for": crashes,
        "under way when the run stopped": count - counts.all,
    }
    told = ", ".join(f"{number} {end}" for end, number in ends.items() if number)
    among = f" ({told})" if told else ""
    per_op = found.net.servers_per_op if isinstance(found.net, NetStatistics) else 0.0
    requests = (found.store or {}).get("requests-per-op")
    store = "" if requests is None else f", {requests:.2f} store requests"
    return f"{count} operations{among}, {per_op:.2f} server messages{store} an operation"


def _missed_rate(history: Sequence[Op], options: TestOptions) -> str:
    """Which rate was asked for and reached, if fewer operations were made than chance explains."""
    limit_s = options.time_limit_s
    asked = options.rate * limit_s
    count = operation_count(op for op in history if op.time < limit_s * _NS)
    if asked - count <= max(_RATE_TOLERANCE * asked, 2 * sqrt(asked)):
        return ""
    return (
        f"{options.rate:g} operations a second were asked for, {count / limit_s:.0f} were made: a client"
        " waits for an answer before it asks again (--concurrency gives more clients)"
    )


def _last_line(found: Checks, findings: Sequence[Finding], outcome: RunResult) -> str:
    if found.valid is False:
        return f"✘ INVALID: {_why_invalid(found, findings)}."
    if failure := outcome.failure:
        word = "UNKNOWN" if failure.interrupted else "CRASHED"
        return f"? {word}: {so_far(findings, started=bool(outcome.history))}"
    if found.valid is not True:
        return "? UNKNOWN: nothing wrong was found, but not everything could be checked."
    return "✔ VALID: no anomaly found."


def _why_invalid(found: Checks, findings: Sequence[Finding]) -> str:
    never, availability = found.never, found.availability
    is_shown = any(each.witness for each in findings if each.invalidating)
    if is_shown or not (never or found.workload["valid?"] is True):
        return "the history shows anomalies that this workload does not allow"
    parts = [_never(found.stats)] if never and isinstance(found.stats, Stats) else []
    if isinstance(availability, Availability) and availability.valid is False:
        share = f"{availability.ok_fraction:.1%} of the operations succeeded"
        parts.append(f"{share}, which is less than asked for")
    if not found.answers.valid:
        parts.append("requests were answered more than once")
    return f"{'' if never else 'no anomaly was found, but '}{'; and '.join(parts)}"


def _never(stats: Stats) -> str:
    """What never succeeded, and of what was tried most often, why."""
    most = max(stats.never, key=lambda f: stats.by_f[f].all)
    of = f"of {most}, " if len(stats.never) > 1 else ""
    why = f": {of}{stats.reasons[most].rstrip('.')}" if most in stats.reasons else ""
    return f"{listed(stats.never)} never succeeded{why}"


def so_far(findings: Sequence[Finding], *, started: bool) -> str:
    """What is known of a run that stopped before its end, and shows nothing that is certainly wrong."""
    if not started:
        return "the run did not start, so nothing was tested."
    if any(each.unsettled for each in findings):
        return "the run stopped before it could show whether anything is missing."
    return "the run stopped before its end. Nothing wrong was found so far."


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


def print_failed(found: Checks, console: Console) -> None:
    """Print the checks other than the workload's own that did not pass, each with what it says."""
    for name, check in found.own.items():
        if check.valid is not True:
            mark, style = _MARKS[check.valid is False]
            console.print(Text(f"{mark} {name}", style=style))
            for sentence in _facts(check):
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
        shown = value if len(value) <= _VALUE_WIDTH else f"{value[:_VALUE_WIDTH]} …"
        node = [place.node(op.process) if isinstance(op.process, int) else ""] if place else []
        cells = (f"{op.index}", f"{op.time / _NS:.6f}", f"{op.process}", *node)
        table.add_row(*map(Text, (*cells, f"{op.type} {op.f}", shown)))
    return table


def _facts(check: Check) -> Iterator[str]:
    if isinstance(check, Stats):
        for f in check.never:
            yield f"{f} never succeeded{': ' if f in check.reasons else '.'}{check.reasons.get(f, '')}"
    if isinstance(check, Answers):
        yield from check.sentences()
    numbers = {name: value for name, value in check.edn().items() if name not in _SAID}
    if numbers:
        yield "; ".join(
            f"{name}: {edn.dumps(each)[:_VALUE_WIDTH]}" for name, each in numbers.items()
        )
