"""After a run: judge the history, write the results, draw the plots, print the verdict."""

import json
import platform
import sys
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import verdict
from bench.checkers import UNKNOWN, Result, check_all, worst
from bench.circumstances import with_circumstances
from bench.failure import RunFailure
from bench.options import TestOptions
from bench.run import Outcome
from runs import edn
from runs.faults.injections import Injection, injections
from runs.history import Op, edn_line
from runs.journal import FILE_NAME, compress_if_large
from runs.keyword import Keyword, keywords
from runs.writing import write_whole
from workloads.interface import Workload

EXIT_VALID, EXIT_INVALID, EXIT_UNKNOWN, EXIT_CRASHED = 0, 1, 2, 255
_VERSIONED = ("leaderless", "orjson", "click", "rich", "matplotlib")


def describe_test(options: TestOptions, started: datetime) -> dict[str, Any]:
    """The content of test.json: every option, the seed among them, versions, and the command line."""
    versions = {name: _version(name) for name in _VERSIONED}
    return options.as_dict() | {
        "engine": "embedded",
        "started": started.isoformat(timespec="milliseconds"),
        "argv": sys.argv[1:],
        "versions": {"python": platform.python_version(), **versions},
    }


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people: indented, anything foreign as text."""
    write_whole(path, [json.dumps(content, indent=2, default=_plain), "\n"])


def judge(outcome: Outcome, options: TestOptions, workload: Workload) -> Result:
    """Check the history; return the results."""
    results = check_all(outcome.history, options.as_dict(), outcome.network, workload.check)
    if told := injections(outcome.history):
        results[Keyword("faults")] = [_injected(each) for each in told]
    if outcome.failure:
        # What happened before the failure can show an anomaly, but never that all is well.
        results[Keyword("error")] = str(outcome.failure)
        results[Keyword("valid?")] = worst([results[Keyword("valid?")], UNKNOWN])
    return results


def write(run_dir: Path, outcome: Outcome, results: Result) -> None:
    """Write history.edn, results.edn and results.json (`OSError` when the disk is full)."""
    write_json(run_dir / "results.json", results)
    write_whole(run_dir / "results.edn", [edn.dumps(results, pretty=True), "\n"])
    write_whole(run_dir / "history.edn", (edn_line(op) + "\n" for op in outcome.history))
    compress_if_large(run_dir / FILE_NAME)


def tell(
    console: Console, run_dir: Path, results: Result, outcome: Outcome, workload: Workload
) -> None:
    """Print the verdict for a person, ending with one line that says it all and where the rest is."""
    judged = results[Keyword("workload")]
    # A checker that broke has an error to tell instead of findings.
    explain = None if "error" in judged else workload.explain
    findings = explain(judged, outcome.history) if explain else []
    verdict.render(results, with_circumstances(findings, outcome.history), console)
    if outcome.failure:
        console.print()
        tell_failure(console, outcome.failure)
    console.print(f"\n{_figures(results)}", highlight=False, soft_wrap=True)
    console.print(_last_line(results, outcome.failure), highlight=False)
    console.print(f"Results: {run_dir}", highlight=False, soft_wrap=True)


def tell_failure(console: Console, failure: RunFailure) -> None:
    """Print why a run ended early."""
    console.print(_headline(failure), style="bold red")
    console.print(str(failure), markup=False, highlight=False, soft_wrap=True)


def draw(console: Console, run_dir: Path, history: list[Op], test: Mapping[str, Any]) -> None:
    """Draw plots and diagrams. A failure is reported and changes nothing else. Ctrl-C skips them."""
    from plots import draw_all

    try:
        drawn = draw_all(run_dir, history, test)
    except KeyboardInterrupt:
        console.print("Drawing was interrupted.", style="yellow")
        return
    for name, artefact in drawn.items():
        if isinstance(artefact, Exception):
            console.print(f"{name} could not be drawn: {artefact}", style="yellow")


def exit_status(results: Result, failure: RunFailure | None) -> int:
    """As the real tool's: 0 valid, 1 invalid, 2 unknown, 255 when the run could not be finished."""
    if failure and not failure.interrupted:
        return EXIT_CRASHED
    verdict = results[Keyword("valid?")]
    return {True: EXIT_VALID, False: EXIT_INVALID}.get(verdict, EXIT_UNKNOWN)


def _injected(injection: Injection) -> Result:
    """A fault for results.edn, beside what the real tool has there; times in ns of the history."""
    return keywords(
        fault=Keyword(injection.fault),
        start_time=injection.start_ns,
        end_time=injection.end_ns,
        text=injection.text,
    )


def _headline(failure: RunFailure) -> str:
    return "Stopped early" if failure.interrupted else "The run could not be finished"


def _figures(results: Result) -> str:
    """What a run did and cost, in one line."""
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


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, Op):
        return {"index": value.index, "time": value.time, "type": value.type} | {
            "process": value.process,
            "f": value.f,
            "value": value.value,
            **value.extra,
        }
    return str(value)
