"""What was in force when an anomaly began, for a sentence beside it.

An anomaly begins with the earliest operation of its witness. What was in force at any time between the
invocation and the completion of that operation may have to do with it. So may what was injected from then
until the last operation of the witness or, where something is missing, until the end of the run. A final read
that lacks an add shows no more than that one of the adds was lost: such an anomaly began with any of its
`causes`, so all that was in force while they were made is told.
"""

from collections.abc import Sequence
from dataclasses import replace

from runs.faults import Injection, injections, listed
from runs.history import NS, Op, completions
from workloads.interface import Finding

_TOLD_MAX = 6  # of many faults, the first


def with_circumstances(findings: Sequence[Finding], history: Sequence[Op]) -> list[Finding]:
    """The findings, each with its `circumstances`; unchanged when the history has no faults."""
    injected = injections(history)
    return [
        replace(each, circumstances=_circumstances(each, history, injected)) if injected else each
        for each in findings
    ]


def _circumstances(finding: Finding, history: Sequence[Op], injected: list[Injection]) -> str:
    if not finding.witness:
        return ""
    first = min(finding.causes or finding.witness, key=lambda op: op.time)
    invoked_ns = completed_ns = first.time
    for halves in completions(history).items():
        invoked, completed = (history[position] for position in halves)
        if first.index in (invoked.index, completed.index):
            invoked_ns, completed_ns = invoked.time, completed.time
    began = f"{first.time / NS:.3f} s"
    if finding.causes:
        completed_ns = max(op.time for op in finding.causes)
        began = f"between {invoked_ns / NS:.3f} s and {completed_ns / NS:.3f} s"
    last_ns = history[-1].time if finding.at_end else max(op.time for op in finding.witness)
    later = [each for each in injected if completed_ns < each.start_ns <= last_ns]
    until = "the end of the run" if finding.at_end else f"{last_ns / NS:.3f} s"
    then = f" Then, until {until}: {'; '.join(_few(later))}." if later else ""
    return f"It began {began} into the run, {_meanwhile(invoked_ns, completed_ns, injected)}{then}"


def _meanwhile(invoked_ns: int, completed_ns: int, injected: Sequence[Injection]) -> str:
    present = [
        each for each in injected if each.start_ns <= completed_ns and each.end_ns >= invoked_ns
    ]
    if present:
        return f"while {listed(_few(present))}."
    past = [each for each in injected if each.end_ns < invoked_ns]
    if not past:
        return "before any fault."
    latest = max(past, key=lambda each: each.end_ns)
    ago_s = (invoked_ns - latest.end_ns) / NS
    return f"{ago_s:.3f} s after the latest fault had ended, in which {latest.text}."


def _few(injected: Sequence[Injection]) -> list[str]:
    texts = [each.text for each in injected[:_TOLD_MAX]]
    more = len(injected) - len(texts)
    return [*texts, f"{more} more faults"] if more > 1 else [each.text for each in injected]
