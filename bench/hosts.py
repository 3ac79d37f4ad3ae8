"""Where nodes live: a host runs one node and carries lines to and from it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from bench.failure import RunFailure

OnLine = Callable[[str, bytes], None]  # (node, a line it printed, without its newline)
OnFailure = Callable[[RunFailure], None]


class Host(Protocol):
    """One node."""

    name: str

    def start(self) -> None:
        """Start the node (`RunFailure` when it cannot be started)."""

    def deliver(self, message: bytes) -> None:
        """Give the node one message, without a newline; lost when the node is killed."""

    def kill(self) -> None:
        """End the node at once (SIGKILL). Its memory is lost, and so are messages to and from it."""

    def restart(self) -> None:
        """Start a killed node again: the same name, an empty memory (`RunFailure` when it cannot be)."""

    def pause(self) -> None:
        """Stop the node (SIGSTOP). Messages to it wait. Does nothing to a killed node."""

    def resume(self) -> None:
        """Continue a paused node (SIGCONT). It gets the messages that waited."""

    def postmortem(self) -> str:
        """The node's exit status and its last output, for a report."""


class Hosts(Protocol):
    """All nodes of a run."""

    def prepare(self) -> Sequence[Host]:
        """All of them, none of which is started."""

    def add(self, name: str) -> Host:
        """One more, which is not started."""

    def stop(self) -> None:
        """Stop them all and whatever they started. Never fails, and may be called at any time."""
