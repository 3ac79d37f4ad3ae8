"""Whether a trace is a behaviour of HeadLog, and if not, at which step and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from specs.tools import output, tlc
from specs.tools.manifest import SPECS_DIR
from specs.tools.ordering import in_store_order
from specs.tools.outcomes import lost_switches, with_outcomes
from specs.tools.traces import Trace, config_text, module_text, read

_STUCK = re.compile(r'<<\s*"STUCK",\s*(\d+),\s*"([^"]*)"\s*>>')  # TLC breaks long lines


@dataclass(frozen=True)
class Judgement:
    """Accepted, or rejected at a step (1 is the first event) for a reason."""

    accepted: bool
    step: int | None = None
    reason: str = ""


class ValidationError(Exception):
    """TLC could not follow the trace at all; the message is TLC's."""


def validate(trace: Trace, timeout_s: float = 300) -> Judgement:
    """Follow a trace through HeadLog, its events in the order of the store.

    Raises:
        ValidationError: TLC failed.
        specs.tools.tlc.TlcUnavailableError: Java or TLC is missing.
    """
    completed = with_outcomes(trace.events)
    order = in_store_order([event for _, event in completed])
    ordered = replace(
        trace,
        events=tuple(completed[place][1] for place in order),
        switches=lost_switches(trace.events),
    )
    text, _ = tlc.run(
        SPECS_DIR / "HeadLog" / "HeadLogTrace.tla",
        config_text(ordered),
        timeout_s=timeout_s,
        extra_modules={"TraceData": module_text(ordered)},
    )
    outcome = output.parse(text)
    if outcome.verdict == "violation of NotAccepted":
        return Judgement(True)
    stuck = [(int(step), reason) for step, reason in _STUCK.findall(text)]
    if outcome.verdict != "pass" or not stuck:
        raise ValidationError(outcome.message or text[-2000:])
    last = max(step for step, _ in stuck)
    reasons = dict.fromkeys(reason for step, reason in stuck if step == last)
    return Judgement(False, completed[order[last - 1]][0] + 1, "; or ".join(reasons))


def validate_file(path: Path, timeout_s: float = 300) -> Judgement:
    """The same for a file.

    Raises:
        specs.tools.traces.TraceError: a line is no event.
    """
    with path.open(encoding="utf-8") as lines:
        return validate(read(lines), timeout_s)
