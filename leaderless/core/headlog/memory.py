"""Keeps a view within its memory: what was compacted longest ago goes, and is read back when polled."""

from typing import Any

from leaderless.core.coordination import StoreSilent, read_as
from leaderless.core.headlog.records import COMPACTED, Index, Run, index_of, sealed_of
from leaderless.core.headlog.replica import Replica
from leaderless.core.headlog.view import InvariantBroken
from leaderless.core.process import Process


class Memory:
    """Evicts runs of one node's view above `bytes_max`, which is the replica's limit if not given."""

    def __init__(self, replica: Replica, bytes_max: int | None = None) -> None:
        self._replica = replica
        self._bytes_max = replica.limits.memory_bytes if bytes_max is None else bytes_max
        self._evicting = False
        self._looked_at = -1  # segments sealed when the index was last looked at

    @property
    def overfull(self) -> bool:
        """Whether to evict: the view is too large and something new may have been compacted."""
        replica = self._replica
        too_large = replica.view.bytes > self._bytes_max
        return too_large and not self._evicting and replica.head.sealed != self._looked_at

    def evict(self) -> Process[None]:
        """Move what is compacted out of memory until the view is small enough."""
        view = self._replica.view
        self._evicting, self._looked_at = True, self._replica.head.sealed
        try:
            index = (yield from read_as(COMPACTED, index_of)) or Index()
            for listed in index.runs:
                if view.bytes <= self._bytes_max:
                    break
                if listed.base == view.resident and listed.end <= view.slot:
                    view.evict(listed.register, (yield from _read_run(listed.register)))
        except StoreSilent:
            pass  # it stays in memory until the store answers
        finally:
            self._evicting = False

    def read(self, key: str, offset: int) -> Process[list[list[Any]]]:
        """A contiguous run of a key from `offset` on, from memory or else from the store."""
        view = self._replica.view
        run = view.read(key, offset)
        if run is not None:
            return run
        register = view.archive.register_of(key, max(0, offset))
        assert register is not None, "what is not in memory is archived"
        archived = yield from _read_run(register)
        first, msgs = archived.keys[key]
        start = max(offset, first)
        return [[at, msg] for at, msg in enumerate(msgs[start - first :], start)]


def _read_run(register: str) -> Process[Run]:
    run = yield from read_as(register, sealed_of)
    if not isinstance(run, Run):
        raise InvariantBroken(f"CommittedReadable: {register} holds no run")
    return run
