"""How many files the bench may open: two pipes for each node, and a few of its own."""

import resource
from pathlib import Path

from bench.failure import RunFailure

_PER_NODE = 2
_SPARE = 64  # history, journal, logs, plots, and what starting a process takes for a moment
_OPEN_FILES = Path("/dev/fd")


def allow_open_files(nodes: int) -> None:
    """Raise the process's own limit as far as so many nodes need.

    Raises `RunFailure` when the system does not let it.
    """
    already = sum(1 for _ in _OPEN_FILES.iterdir()) if _OPEN_FILES.exists() else 0
    needed = already + _PER_NODE * nodes + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise RunFailure(
            f"{nodes} nodes need {needed} open files, and only {hard} are allowed."
            f" Raise the limit (ulimit -n {needed}), or ask for fewer nodes."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
