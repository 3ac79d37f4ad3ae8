"""`python -m specs.trace FILE...`: is each trace a behaviour of HeadLog?

Prints a line a file: accepted, or rejected with the step, the event and the reason. Exit status: 0
when all are accepted, 1 when one is rejected, 2 when a file is no trace or TLC cannot run.
"""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from specs import tlc
from specs.manifest import SPECS_DIR
from specs.store_order import in_store_order, lost_switches, with_outcomes
from specs.translation import Trace, TraceError, config_text, module_text, read

_STUCK = re.compile(r'<<\s*"STUCK",\s*(\d+),\s*"([^"]*)"\s*>>')  # TLC breaks long lines


@dataclass(frozen=True)
class Judgement:
    """Accepted, or rejected at a step (1 is the first event) for a reason."""

    accepted: bool
    step: int = 0
    reason: str = ""


class ValidationError(Exception):
    """TLC could not follow the trace at all; the message is TLC's."""


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(files: tuple[Path, ...]) -> None:
    status = 0
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        try:
            judgement = validate(read(lines))
        except (TraceError, ValidationError, tlc.TlcUnavailableError) as error:
            click.echo(f"{path}: {error}", err=True)
            status = 2
            continue
        click.echo(f"{path}: {describe(lines, judgement)}")
        status = max(status, int(not judgement.accepted))
    sys.exit(status)


def describe(lines: list[str], judgement: Judgement) -> str:
    """One or two lines for people."""
    if judgement.accepted:
        return "accepted"
    event = [line for line in lines if line.strip()][judgement.step]  # the first is the header
    return f"rejected at step {judgement.step}: {judgement.reason}\n    {event}"


def validate(trace: Trace, timeout_s: float = 300) -> Judgement:
    """Follow a trace through HeadLog, its events in the order of the store.

    Raises:
        ValidationError: TLC failed.
        specs.tlc.TlcUnavailableError: Java or TLC is missing.
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
    outcome = tlc.parse(text)
    if outcome.verdict == "violation of NotAccepted":
        return Judgement(True)
    stuck = [(int(step), reason) for step, reason in _STUCK.findall(text)]
    if outcome.verdict != "pass" or not stuck:
        raise ValidationError(outcome.message or text[-2000:])
    last = max(step for step, _ in stuck)
    reasons = dict.fromkeys(reason for step, reason in stuck if step == last)
    return Judgement(False, completed[order[last - 1]][0] + 1, "; or ".join(reasons))


if __name__ == "__main__":
    main()
