"""`python -m specs.trace FILE...`: is each trace a behaviour of HeadLog?

Prints a line a file: accepted, or rejected with the step, the event and the reason. Exit status: 0
when all are accepted, 1 when one is rejected, 2 when a file is no trace or TLC cannot run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from specs.tools.tlc import TlcUnavailableError
from specs.tools.traces import TraceError
from specs.tools.validate import Judgement, ValidationError, validate_file


def describe(path: Path, judgement: Judgement) -> str:
    """One or two lines for people."""
    if judgement.accepted:
        return f"{path}: accepted"
    events = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert judgement.step is not None  # a rejection names its step
    event = events[judgement.step]  # events[0] is the header
    return f"{path}: rejected at step {judgement.step}: {judgement.reason}\n    {event}"


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(files: tuple[Path, ...]) -> None:
    """Judge every file and end the process with the worst status."""
    status = 0
    for path in files:
        try:
            judgement = validate_file(path)
        except (TraceError, ValidationError, TlcUnavailableError) as error:
            click.echo(f"{path}: {error}", err=True)
            status = 2
            continue
        click.echo(describe(path, judgement))
        status = max(status, int(not judgement.accepted))
    sys.exit(status)


if __name__ == "__main__":
    main()
