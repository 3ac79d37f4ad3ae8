"""Committed offsets that are durable when they are acknowledged: a register for each node, only ever raised.

    committed/NODE   {key: offset}      what consumers committed through NODE, in any of its lives

A committed offset needs no place in the order of the log: of two, the higher one holds. So it does not
contend for the head. All that wait at a node go into one compare-and-set of the node's own register, which
costs one round trip and two messages. A reader merges the registers of all nodes by maximum. A fence does
not stop it: that stops appends, not consumers.

Law: a value of the register never comes back and never goes down, because each replaces one that was read,
and raises it. So a compare-and-set of unknown outcome, also one of a former life, does no harm whenever it
arrives.
"""

from dataclasses import dataclass, field

from leaderless.core.coordination import ATTEMPTS, StoreSilent, read_as
from leaderless.core.headlog.records import offsets_of
from leaderless.core.messages import Cas, Offsets, Ok
from leaderless.core.process import Notify, Process, Signal, Sleep, Spawn, Wait, call, gather
from leaderless.core.strategy import Context

LINGER_S = 0.003  # before a write: company saves two messages each, and every consumer waits for it


@dataclass(slots=True, eq=False)
class _Group:
    """Offsets that are written together; `silent`: why they could not be."""

    offsets: Offsets = field(default_factory=dict)
    done: Signal = field(default_factory=Signal)
    silent: StoreSilent | None = None


class DurableCommits:
    """The committed offsets of one node, and of all."""

    def __init__(self, context: Context) -> None:
        self._clock = context.clock
        self._node, self._peers, _ = context.identity
        self._held: Offsets | None = None  # what the own register held last; None: it must be read
        self._waiting = _Group()
        self._running = False

    def commit(self, offsets: Offsets) -> Process[None]:
        """Return when the offsets, or higher ones, are in the store. Raises `StoreSilent`."""
        if raised(self._held or {}, offsets) == self._held:
            return
        group = self._waiting
        group.offsets = raised(group.offsets, offsets)
        if not self._running:
            self._running = True
            yield Spawn(self._run())
        yield Wait(group.done)
        if group.silent:
            raise group.silent

    def read(self) -> Process[Offsets]:
        """The highest committed offset of each key, through any node. Raises `StoreSilent`."""
        names = [_register(peer) for peer in self._peers]
        merged: Offsets = {}
        for found in (yield from gather([read_as(name, offsets_of) for name in names])):
            merged = raised(merged, found or {})
        return raised(merged, self._held or {})  # written while the others were read

    def _run(self) -> Process[None]:
        try:
            while self._waiting.offsets:
                yield Sleep(self._clock.now + LINGER_S)
                group, self._waiting = self._waiting, _Group()
                try:
                    yield from self._write(group.offsets)
                except StoreSilent as silent:
                    group.silent = silent
                yield Notify(group.done)
        finally:
            self._running = False

    def _write(self, offsets: Offsets) -> Process[None]:
        register = _register(self._node)
        for _ in range(ATTEMPTS):
            if self._held is None:
                self._held = (yield from read_as(register, offsets_of)) or {}
            new = raised(self._held, offsets)
            if new == self._held:
                return
            outcome = yield from call(Cas(register, self._held or None, new, create=not self._held))
            self._held = new if isinstance(outcome, Ok) else None
            if self._held is not None:
                return
        raise StoreSilent(
            f"{register!r} may be raised or not: no clear answer in {ATTEMPTS} attempts"
        )


def raised(offsets: Offsets, more: Offsets) -> Offsets:
    """The higher offset of each key; neither argument is changed."""
    return offsets | {key: at for key, at in more.items() if at > offsets.get(key, at - 1)}


def _register(node: str) -> str:
    return f"committed/{node}"
