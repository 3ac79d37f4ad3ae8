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
        """Give the node one message, without a newline; lost when the node is killed."""
        ...

    def kill(self) -> None:
        """End the node this instant (SIGKILL): its memory, and what is on its way to or from it, is lost."""
        ...

    def restart(self) -> None:
        """Start a killed node again: the same name, an empty memory (`RunFailure` when it cannot be)."""
        ...

    def pause(self) -> None:
        """Let the node stand still (SIGSTOP). Messages to it are kept; a killed node is left alone."""
        ...

    def resume(self) -> None:
        """Let a paused node go on (SIGCONT), with the messages that came meanwhile."""
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
