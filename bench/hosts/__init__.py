"""Where nodes live: a host runs one node and carries lines to and from it."""

from collections.abc import Callable
from typing import Protocol

from bench.failure import RunFailure

OnLine = Callable[[str, bytes], None]  # (node, a line it printed, without its newline)
OnFailure = Callable[[RunFailure], None]


class Host(Protocol):
    """One node."""

    name: str

    def start(self) -> None:
        """Start the node (`RunFailure` when it cannot be started)."""
        ...

    def deliver(self, message: bytes) -> None:
        """Give the node one message, without a newline."""
        ...

    def postmortem(self) -> str:
        """What is known about the node's end and its last output, for a report."""
        ...


class Hosts(Protocol):
    """All nodes of a run."""

    def start(self) -> list[Host]:
        """Start them all (`RunFailure` when one cannot be)."""
        ...

    def stop(self) -> None:
        """Stop them all and whatever they started. Never fails, and may be called at any time."""
        ...
