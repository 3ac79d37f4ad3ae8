"""What the pictures show of a history: operations from invocation to completion."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runs.history import NEMESIS, Op, completions


@dataclass(frozen=True, slots=True)
class Span:
    """An operation of a client; `completed` is None when the history ends before it."""

    invoked: Op
    completed: Op | None

    @property
    def type(self) -> str:
        """ok, fail or info; nobody knows what became of an operation that never completed."""
        return self.completed.type if self.completed else "info"

    @property
    def last(self) -> Op:
        return self.completed or self.invoked


def spans(history: Sequence[Op]) -> Iterator[Span]:
    """The operations of clients, in order of invocation."""
    pairs = completions(history)
    for position, op in enumerate(history):
        if op.type == "invoke" and op.process != NEMESIS:
            end = pairs.get(position)
            yield Span(op, None if end is None else history[end])
