"""What the pictures show of a history: operations from invocation to completion, and faults."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.history import NEMESIS, Op, completions

# What the nemesis calls the beginning and the end of a fault (names of Jepsen's nemeses).
_BEGINS = {"kill": "kill", "pause": "pause", "bump-clock": "clock"}
_ENDS = {"start": "kill", "resume": "pause", "reset-clock": "clock"}


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


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that lasted from `start_ns` to `end_ns` of the history's time."""

    name: str
    start_ns: int
    end_ns: int


def spans(history: Sequence[Op]) -> Iterator[Span]:
    """The operations of clients, in order of invocation."""
    pairs = completions(history)
    for position, op in enumerate(history):
        if op.type == "invoke" and op.process != NEMESIS:
            end = pairs.get(position)
            yield Span(op, None if end is None else history[end])


def faults(history: Sequence[Op]) -> list[Fault]:
    """When each kind of fault was active; one that was never healed lasts to the end."""
    found = []
    active: dict[str, int] = {}
    for op in history:
        if op.process != NEMESIS:
            continue
        name, begins = _fault(op.f)
        if begins:
            active.setdefault(name, op.time)
        elif name in active:
            found.append(Fault(name, active.pop(name), op.time))
    end_ns = history[-1].time if history else 0
    found += [Fault(name, start_ns, end_ns) for name, start_ns in active.items()]
    return sorted(found, key=lambda fault: fault.start_ns)


def _fault(f: str) -> tuple[str, bool]:
    """The fault that a nemesis operation is about, and whether it begins there."""
    if f in _ENDS:
        return _ENDS[f], False
    if f in _BEGINS:
        return _BEGINS[f], True
    action, _, name = f.partition("-")
    return name or f, action == "start"
