"""A node's trace in a file, for `python -m specs.trace FILE`.

{segments_per_run}                                the first line, of whoever makes the file
{step, node, ...}                                 each other one: a step of a node, and its fields
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from leaderless.core.messages import Fields, Step
from leaderless.core.strategy import Identity


def trace_to(path: Path, identity: Identity, segments_per_run: int) -> Callable[[Step], None]:
    """A function that appends a step as a line to `path`, which all nodes of a machine may share.

    Each line is one write, so what was done before a crash is in the file. A node that finds itself in the
    file is a restarted one, and says so.
    """
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(_line({"segments_per_run": segments_per_run}))
    lived = any(line.get("node") == identity.node for line in _lines(path))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)  # open as long as the node runs

    def write(step: Step) -> None:
        os.write(descriptor, _line({"step": step.name, "node": identity.node, **step.fields}))

    if lived:
        write(Step("Restart", {"incarnation": identity.writer.rpartition(".")[2]}))
    return write


def _lines(path: Path) -> Iterator[Fields]:
    with path.open("rb") as lines:
        yield from map(orjson.loads, lines)


def _line(fields: Fields) -> bytes:
    return orjson.dumps(fields) + b"\n"
