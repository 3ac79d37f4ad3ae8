"""A node's trace in a file, for `python -m specs.trace FILE`."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from leaderless.core.headlog.runs import SEGMENTS_PER_RUN
from leaderless.core.headlog.trace import written
from leaderless.core.strategy import Identity, Trace


def trace_to(path: Path, identity: Identity) -> Trace:
    """A trace that appends a line a step to `path`, which all nodes of a machine may share.

    Each line is one write, so what was done before a crash is in the file. A node that finds itself in the
    file is a restarted one, and says so.
    """
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(_line({"segments_per_run": SEGMENTS_PER_RUN}))
    lived = any(line.get("node") == identity.node for line in _lines(path))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)  # open as long as the node runs
    trace = written(identity.node, lambda fields: _append(descriptor, fields))
    if lived:
        trace("Restart", dict, {"incarnation": identity.writer.rpartition(".")[2]})
    return trace


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        yield from map(orjson.loads, lines)


def _append(descriptor: int, fields: dict[str, Any]) -> None:
    os.write(descriptor, _line(fields))


def _line(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields) + b"\n"
