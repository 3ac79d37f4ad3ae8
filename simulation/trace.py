"""`python -m simulation.trace FILE...`: is each step that real nodes traced one of HeadLog?

Prints a line a file: accepted, or rejected with the line, the reason and what stands there. Exit status: 0 when
all are accepted, 1 otherwise. A trace begins with an empty log, and has all nodes of it.

A trace does not say when the store made a change: only when a node asked for it, and when a node was told that
the register held its value. The change is followed when a node is told first: none can have acted on it before.
The changes of the head that came before it are known, since a compare-and-set names what it replaces.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import orjson

from leaderless.core.headlog.index import COMPACTED
from leaderless.core.headlog.records import HEAD
from simulation.oracle import Violation
from simulation.refinement import Followed, Refinement


class Traced:
    """Follows a trace line by line. `model` may be one that is wrong."""

    def __init__(self, model: type[Followed] = Followed) -> None:
        self.refinement = Refinement(model)
        self._asked: dict[tuple[str, str], tuple[str | None, Any]] = {}  # old name, new value
        self._held: dict[str, set[str | None]] = defaultdict(lambda: {None})  # names of values

    def follow(self, step: str, node: str, **fields: Any) -> None:
        """Take a line. Raises `Violation`."""
        match step:
            case "Start":
                self.refinement.started(node)
            case "Asked":
                self._asked[fields["register"], fields["new"]] = fields["old"], fields["value"]
            case "Told":
                self._told(fields["register"], fields["new"])
            case _:
                self.refinement.noted.append((node, step, fields))
                self.refinement.settle()

    def _told(self, register: str, name: str | None) -> None:
        held, due = self._held[register], []
        while name not in held:
            old, value = self._asked.get((register, name or ""), (None, None))
            if value is None:
                raise Violation(f"RefinesHeadLog: no node of the trace wrote what {register} holds")
            due.append((name, value))
            name = old if register in (HEAD, COMPACTED) else None
        for each, value in reversed(due):
            held.add(each)
            self.refinement.changed(register, value)


def judged(lines: Iterable[bytes], model: type[Followed] = Followed) -> str:
    """Say which line is the first that is no step of the model, and why; "" if there is none."""
    traced, number = Traced(model), 0
    for number, line in enumerate(lines, 1):
        try:
            traced.follow(**orjson.loads(line))
        except (Violation, KeyError, TypeError, ValueError) as error:
            return f"rejected at line {number}: {error}\n    {line.decode().strip()}"
    return "" if number else "rejected: there is no line, so nothing was traced"


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(files: tuple[Path, ...]) -> None:
    found = {path: judged(path.read_bytes().splitlines()) for path in files}
    for path, problem in found.items():
        click.echo(f"{path}: {problem or 'accepted'}")
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
