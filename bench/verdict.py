"""A verdict for people: what went wrong in a sentence, the few operations that show it, and a last line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench import mute
from bench.checkers import Result
from bench.failure import RunFailure
from bench.run import RunResult
from runs import edn
from runs.faults import Injection, injections
from runs.history import Op, completions
from runs.keyword import Keyword
from workloads.interface import Finding, Workload

EXIT_VALID, EXIT_INVALID, EXIT_UNKNOWN, EXIT_CRASHED = 0, 1, 2, 255
_VALUE_WIDTH = 160
_NS = 1e9
_TOLD_MAX = 6  # of many faults, the first


def print_verdict(
    console: Console, run_dir: Path, results: Result, outcome: RunResult, workload: Workload
) -> None:
    """Print the verdict for a person, ending with one line that says it all and where the rest is."""
    judged = results[Keyword("workload")]
    # A checker that failed has an error instead of findings.
    is_judged = "error" not in judged
    findings = workload.judge.explain(judged, outcome.history) if is_judged else []
    render(results, with_circumstances(findings, outcome.history), console)
    print_lines_not_heard(console, outcome.history, outcome.network.hearing.dropped)
    if outcome.failure:
        console.print()
        print_failure(console, outcome.failure)
    console.print(f"\n{_figures(results)}", highlight=False, soft_wrap=True)
    if workload.judge.figures and is_judged:
        console.print(workload.judge.figures(judged), highlight=False, soft_wrap=True)
    console.print(_last_line(results, outcome.failure), highlight=False)
    console.print(f"Results: {run_dir}", highlight=False, soft_wrap=True)


def print_lines_not_heard(
    console: Console, history: Sequence[Op], dropped: Mapping[str, int]
) -> None:
    """Print which nodes were mute and why, and how many lines of each a lenient bench dropped."""
    for text in mute.reports(history):
        console.print(Text("• mute", style="bold yellow"))
        console.print(_indented(text))
        console.print()
    for node, count in sorted(dropped.items()):
        console.print(
            f"{count} lines of {node} were dropped (--lenient); the real Maelstrom would not have"
            " heard the node after the first of them.",
            highlight=False,
        )


def print_failure(console: Console, failure: RunFailure) -> None:
    headline = "Stopped early" if failure.interrupted else "The run could not be finished"
    console.print(headline, style="bold red")
    console.print(str(failure), markup=False, highlight=False, soft_wrap=True)


def exit_status(results: Result, failure: RunFailure | None) -> int:
    """As the real tool's: 0 valid, 1 invalid, 2 unknown, 255 when the run could not be finished."""
    if failure and not failure.interrupted:
        return EXIT_CRASHED
    verdict = results[Keyword("valid?")]
    return {True: EXIT_VALID, False: EXIT_INVALID}.get(verdict, EXIT_UNKNOWN)


def _figures(results: Result) -> str:
    """One line with the operations and messages of a run."""
    stats, net = results[Keyword("stats")], results[Keyword("net")]
    crashes = stats["by-f"].get("crash", {}).get("count", 0)
    parts = [
        f"{stats['count'] - crashes} operations",
        f"{stats['fail-count']} failed",
        f"{stats['info-count'] - crashes} of unknown outcome",
        f"{crashes} client crashes" if crashes else "",
        f"{net['servers'].get('msgs-per-op', 0.0):.2f} server messages an operation",
    ]
    return ", ".join(filter(None, parts))


def _last_line(results: Result, failure: RunFailure | None) -> str:
    verdict = results[Keyword("valid?")]
    if verdict is False:
        return "✘ INVALID: the history shows anomalies that this workload does not allow."
    if failure or verdict is not True:
        return "? UNKNOWN: nothing wrong was found, but not everything could be checked."
    return "✔ VALID: no anomaly found."


def render(
    results: Mapping[Any, Any],
    findings: Sequence[Finding],
    console: Console,
    rest: str = "results.edn, under :workload",
) -> None:
    """Print every finding, the invalidating ones first, then the other checks that failed.

    `results` is the map of all checkers' results; `rest` says where further instances can be found.
    """
    for finding in sorted(findings, key=lambda each: not each.invalidating):
        _print_finding(finding, console, rest)
    for name, sentence in _failed_checks(results):
        console.print(Text(f"✘ {name}", style="bold red"))
        console.print(_indented(sentence))


def _print_finding(finding: Finding, console: Console, rest: str) -> None:
    mark, style = ("✘", "bold red") if finding.invalidating else ("•", "bold yellow")
    note = "" if finding.invalidating else ", allowed"
    console.print(Text(f"{mark} {finding.type} ({finding.count}{note})", style=style))
    console.print(_indented(finding.sentence))
    if finding.circumstances:
        console.print(_indented(finding.circumstances, style="italic"))
    if finding.witness:
        console.print(_table(finding.witness))
    if finding.count > 1:
        more = Text(f"  {finding.count - 1} more: see {rest} :{finding.type}", style="dim")
        console.print(more, soft_wrap=True)  # a path that is cut in two cannot be copied
    console.print()


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 2))


def _table(witness: Sequence[Op]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True, header_style="dim")
    for column, justify in (("index", "right"), ("time/s", "right"), ("process", "right")):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type] # "right" is one
    table.add_column("operation", no_wrap=True)
    table.add_column("value", overflow="fold")
    for op in sorted(witness, key=lambda each: each.index):
        value = edn.dumps(op.value)
        shown = value if len(value) <= _VALUE_WIDTH else f"{value[:_VALUE_WIDTH]} …"
        cells = (str(op.index), f"{op.time / _NS:.6f}", str(op.process), f"{op.type} {op.f}", shown)
        table.add_row(*map(Text, cells))
    return table


def _failed_checks(results: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The checks other than the workload's own that did not pass, each with its numbers."""
    for name, result in results.items():
        if name != "workload" and isinstance(result, dict) and result.get("valid?") is not True:
            yield str(name), "; ".join(_facts(result))


def _facts(result: Mapping[str, Any]) -> Iterator[str]:
    for name, value in result.items():
        if name == "by-f":
            never = [str(f) for f, of_f in value.items() if of_f.get("valid?") is not True]
            yield f"never succeeded: {', '.join(never)}"
        elif name != "valid?":
            yield f"{name}: {edn.dumps(value)[:_VALUE_WIDTH]}"


# ---------------------------------------------------------------- the faults at the time


def with_circumstances(findings: Sequence[Finding], history: Sequence[Op]) -> list[Finding]:
    """The findings, each with its `circumstances`; unchanged when the history has no faults.

    An anomaly begins with the earliest operation of its witness. What was in force at any time between the
    invocation and the completion of that operation may have to do with it, and so may what was injected
    from then until the last operation of the witness.
    """
    injected = injections(history)
    if not injected:
        return list(findings)
    return [
        replace(finding, circumstances=_circumstances(finding.witness, history, injected))
        for finding in findings
    ]


def _circumstances(witness: Sequence[Op], history: Sequence[Op], injected: list[Injection]) -> str:
    if not witness:
        return ""
    first = min(witness, key=lambda op: op.time)
    invoked_ns, completed_ns = _duration(first, history)
    last_ns = max(op.time for op in witness)
    later = [each for each in injected if completed_ns < each.start_ns <= last_ns]
    then = f" Then, until {last_ns / _NS:.3f} s: {'; '.join(_few(later))}." if later else ""
    return f"{_beginning(first, invoked_ns, completed_ns, injected)}{then}"


def _beginning(first: Op, invoked_ns: int, completed_ns: int, injected: Sequence[Injection]) -> str:
    present = [
        each for each in injected if each.start_ns <= completed_ns and each.end_ns >= invoked_ns
    ]
    began = f"It began {first.time / _NS:.3f} s into the run, "
    if present:
        return f"{began}while {_and(_few(present))}."
    past = [each for each in injected if each.end_ns < invoked_ns]
    if not past:
        return f"{began}before any fault."
    latest = max(past, key=lambda each: each.end_ns)
    ago_s = (invoked_ns - latest.end_ns) / _NS
    return f"{began}{ago_s:.3f} s after the latest fault had ended ({latest.text})."


def _duration(op: Op, history: Sequence[Op]) -> tuple[int, int]:
    """When the operation was invoked and when it was completed, if it was."""
    for halves in completions(history).items():
        invoked, completed = (history[position] for position in halves)
        if op.index in (invoked.index, completed.index):
            return invoked.time, completed.time
    return op.time, op.time


def _few(injected: Sequence[Injection]) -> list[str]:
    texts = [each.text for each in injected[:_TOLD_MAX]]
    more = len(injected) - len(texts)
    return [*texts, f"{more} more faults"] if more > 1 else [each.text for each in injected]


def _and(texts: Sequence[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
