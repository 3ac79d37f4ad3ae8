"""The last line of a verdict, and the exit status, which say the same."""

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from bench.failure import EXIT_CRASHED, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID, RunFailure
from bench.run import RunResult
from runs.facts import mapping, never_succeeded
from runs.faults import listed
from workloads.interface import Finding

NOTHING_ASKED = "nothing was asked: clients made no operation in the main phase"


def exit_status(results: Mapping[Any, Any], failure: RunFailure | None) -> int:
    """What the last line says, as the real tool's: 0 valid, 1 invalid, 2 unknown, 255 crashed.

    A run that crashed is invalid all the same if it shows what is certainly wrong.
    """
    if isinstance(results["valid?"], bool):
        return EXIT_VALID if results["valid?"] else EXIT_INVALID
    return EXIT_CRASHED if failure and not failure.interrupted else EXIT_UNKNOWN


def last_line(
    results: Mapping[Any, Any], findings: Sequence[Finding], outcome: RunResult, *, is_odd: bool
) -> str:
    if results["valid?"] is False:
        return f"✘ INVALID: {_why_invalid(results, findings)}."
    if failure := outcome.failure:
        said = so_far(findings, started=bool(outcome.history))
        if failure.interrupted:
            return f"? UNKNOWN: {said}"
        cause = shorten(str(failure).splitlines()[0], 160, placeholder=" …").rstrip(".:")
        return f"? CRASHED: {cause}. {said[0].upper()}{said[1:]}"
    if "nothing-asked" in results["workload"]:
        return f"? UNKNOWN: {NOTHING_ASKED}."
    if results["valid?"] is not True:
        return "? UNKNOWN: nothing wrong was found, but not everything could be checked."
    return f"✔ VALID: no anomaly found{'; what is odd stands above' * is_odd}."


def _why_invalid(results: Mapping[Any, Any], findings: Sequence[Finding]) -> str:
    stats, availability = results["stats"], results["availability"]
    never = never_succeeded(stats)
    is_shown = any(each.witness for each in findings if each.invalidating)
    if is_shown or not (never or results["workload"]["valid?"] is True):
        return "the history shows anomalies that this workload does not allow"
    parts = []
    if never:  # and of what was tried most often, why
        most = max(never, key=lambda f: int(stats["by-f"][f]["count"]))
        of = f"of {most}, " if len(never) > 1 else ""
        reasons = mapping(stats.get("reasons"))
        why = f": {of}{reasons[most].rstrip('.')}" if most in reasons else ""
        parts = [f"{listed(never)} never succeeded{why}"]
    if availability["valid?"] is False:
        share = f"{availability['ok-fraction']:.1%} of the operations succeeded"
        parts.append(f"{share}, which is less than asked for")
    beside = {
        "answers": "requests were answered more than once",
        "names": "messages were sent in the name of another",
    }
    parts += [beside[each] for each in beside if results.get(each, {}).get("valid?") is False]
    return f"{'' if never else 'no anomaly was found, but '}{'; and '.join(parts)}"


def so_far(findings: Sequence[Finding], *, started: bool) -> str:
    """What is known of a run that stopped before its end, and shows nothing that is certainly wrong."""
    if not started:
        return "the run did not start, so nothing was tested."
    if any(each.unsettled for each in findings):
        return "the run stopped before it could show whether anything is missing."
    return "the run stopped before its end. No anomaly was found so far."
