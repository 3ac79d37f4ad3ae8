"""A verdict for people: each anomaly in a sentence, and the few operations that show it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runs import edn
from runs.history import Op
from workloads.interface import Finding

_VALUE_WIDTH = 160
_NS = 1e9


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
