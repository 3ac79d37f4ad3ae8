"""Strategy `cas`: one register a key, replaced as a whole by compare-and-set, with retry.

    log/KEY        [[writer, n, msg], ...]     the offset of a message is its place
    committed/KEY  offset                      only ever raised

Guarantees: a send is acknowledged only when its message is in the register, exactly once, even when the
store's answer was lost; every poll reads the store, so polls are linearizable; nothing is kept in the node,
so a restarted one loses nothing.

A node has one compare-and-set a key under way, with all sends of the key that waited for it: clients of
one node never get into each other's way.

Weak where it matters: every poll costs a round trip a key, every append rewrites the whole log of its key
(quadratic bytes over the life of a key), and nodes that write one key livelock each other as they become
many: each compare-and-set that wins makes all others read again.
"""

from itertools import count
from reprlib import repr as brief
from typing import Any

from leaderless.core.coordination import Json, Misfit, read_as
from leaderless.core.messages import Cas, Ok, Outcome, Poll, PollOk, Reply, Send, SendOk
from leaderless.core.process import Process, gather
from leaderless.core.strategies.serving import CommitsInStore, InTurn
from leaderless.core.strategy import Context

Log = list[Any]  # [[writer, n, msg], ...]


class CasLog(CommitsInStore):
    """Serves requests by reading and replacing registers; see the module's text."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        self._writer = context.identity.writer
        self._numbers = count()
        self._seen: dict[str, Log] = {}  # the last log known of a key: a guess to compare with
        self._sends = InTurn(self._append_waiting)

    def _send(self, event: Send) -> Process[None]:
        return self._sends.send(event)

    def _append_waiting(self, key: str, sends: list[Send]) -> Process[None]:
        """Append all that wait now, and answer them; more may come meanwhile."""
        batch = sends[:]
        entries = [[self._writer, next(self._numbers), send.msg] for send in batch]
        first = yield from self._append(key, entries)
        del sends[: len(batch)]
        for offset, send in enumerate(batch, first):
            yield Reply(send.request, SendOk(offset))

    def _append(self, key: str, entries: Log) -> Process[int]:
        """Returns the offset of the first entry. Raises `StoreSilent`."""
        log = self._seen.get(key, [])
        while True:
            new = log + entries
            outcome: Outcome = yield Cas(f"log/{key}", log, new, not log)
            if isinstance(outcome, Ok):
                self._seen[key] = new
                return len(log)
            # Mismatch: another node was faster. Unknown: it may have happened, or happen later; reading
            # tells, because a later replacement of the same old log must then fail.
            log = yield from self._read(key)
            first = _find(log, entries[0])
            if first is not None:
                return first

    def _poll(self, event: Poll) -> Process[None]:
        keys = list(event.offsets)
        logs = yield from gather([self._read(key) for key in keys])
        msgs = {
            key: [[offset, log[offset][2]] for offset in range(start, len(log))]
            for key, log in zip(keys, logs, strict=True)
            if len(log) > (start := max(0, event.offsets[key]))
        }
        yield Reply(event.request, PollOk(msgs))

    def _read(self, key: str) -> Process[Log]:
        log = (yield from read_as(f"log/{key}", _log_of)) or []
        if len(log) > len(self._seen.get(key, ())):  # an older answer may come later
            self._seen[key] = log
        return log


def _log_of(value: Json) -> Log:
    """What the register of a key holds. Raises `Misfit`."""
    if isinstance(value, list):
        log = [entry for entry in value if isinstance(entry, list) and len(entry) == 3]
        if len(log) == len(value):
            return log
    raise Misfit(f"no log of a key: {brief(value)}")


def _find(log: Log, entry: list[Json]) -> int | None:
    """The offset of an entry, known by its writer and number; looked for from the newest."""
    name = entry[:2]
    for offset in range(len(log) - 1, -1, -1):
        if log[offset][:2] == name:
            return offset
    return None
