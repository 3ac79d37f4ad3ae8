"""What strategies with a log a key have in common: dispatch, where commits are, sends in turn."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable

from leaderless.core.coordination import Json, count_of, failure_of, raise_to, read_as
from leaderless.core.messages import (
    CommitOffsets,
    CommitOffsetsOk,
    ListCommittedOffsets,
    ListCommittedOffsetsOk,
    Pairs,
    Poll,
    PollOk,
    Reply,
    RequestEvent,
    Send,
    Share,
)
from leaderless.core.process import Process, Spawn, gather
from leaderless.core.strategy import not_supported


class ClientRequests(ABC):
    """A strategy that serves the four requests of clients, and no other."""

    def serve(self, event: RequestEvent) -> Process[None]:
        """The process that answers `event`."""
        if isinstance(event, Send):  # mostly
            return self._send(event)
        if isinstance(event, Poll):
            return self._poll(event)
        match event:
            case CommitOffsets():
                return self._commit_offsets(event)
            case ListCommittedOffsets():
                return self._list_committed_offsets(event)
            case _:
                return not_supported(event)

    @abstractmethod
    def _send(self, event: Send) -> Process[None]: ...

    @abstractmethod
    def _poll(self, event: Poll) -> Process[None]: ...

    @abstractmethod
    def _commit_offsets(self, event: CommitOffsets) -> Process[None]: ...

    @abstractmethod
    def _list_committed_offsets(self, event: ListCommittedOffsets) -> Process[None]: ...


class CommitsInStore(ClientRequests):
    """Keeps committed offsets in registers `committed/KEY`, which are only ever raised."""

    def __init__(self) -> None:
        self._raised: dict[str, int] = {}  # offsets that a register had: none is lower now

    def _commit_offsets(self, event: CommitOffsets) -> Process[None]:
        yield from gather([self._raise(key, offset) for key, offset in event.offsets.items()])
        yield Reply(event.request, CommitOffsetsOk())

    def _raise(self, key: str, offset: int) -> Process[None]:
        reached = yield from raise_to(f"committed/{key}", offset, self._raised.get(key))
        self._raised[key] = max(reached, self._raised.get(key, reached))

    def _list_committed_offsets(self, event: ListCommittedOffsets) -> Process[None]:
        reads = [read_as(f"committed/{key}", count_of) for key in event.keys]
        offsets = yield from gather(reads)
        found = zip(event.keys, offsets, strict=True)
        known = {key: offset for key, offset in found if offset is not None}
        yield Reply(event.request, ListCommittedOffsetsOk(known))


class Copy:
    """Messages of each key in memory, by offset; offsets may be sparse and come in any order."""

    def __init__(self) -> None:
        self._offsets: dict[str, list[int]] = {}
        self._pairs: dict[str, Pairs] = {}

    def put(self, key: str, offset: int, msg: Json) -> None:
        """Keep a message; of two for one offset the first stays."""
        offsets = self._offsets.setdefault(key, [])
        place = bisect_left(offsets, offset)
        if place == len(offsets) or offsets[place] != offset:
            offsets.insert(place, offset)
            self._pairs.setdefault(key, []).insert(place, [offset, msg])

    def since(self, offsets: dict[str, int]) -> dict[str, Pairs]:
        """`{key: [[offset, msg], ...]}` from each key's offset on; keys without messages are left out."""
        msgs = {
            key: self._pairs[key][bisect_left(self._offsets[key], offset) :]
            for key, offset in offsets.items()
            if key in self._pairs
        }
        return {key: pairs for key, pairs in msgs.items() if pairs}


class AllInMemory(ClientRequests):
    """Answers polls from this node's copy, which peers add to, and keeps commits in memory too.

    A commit is known to its node only, until it stops: elsewhere and later messages are delivered again.
    """

    def __init__(self) -> None:
        self._copy = Copy()
        self._committed: dict[str, int] = {}

    def hear(self, share: Share) -> None:
        """Take what a peer shows."""
        for key, pairs in share.msgs.items():
            for offset, msg in pairs:
                self._copy.put(key, offset, msg)

    def _poll(self, event: Poll) -> Process[None]:
        yield Reply(event.request, PollOk(self._copy.since(event.offsets)))

    def _commit_offsets(self, event: CommitOffsets) -> Process[None]:
        for key, offset in event.offsets.items():
            self._committed[key] = max(offset, self._committed.get(key, offset))
        yield Reply(event.request, CommitOffsetsOk())

    def _list_committed_offsets(self, event: ListCommittedOffsets) -> Process[None]:
        known = {key: self._committed[key] for key in event.keys if key in self._committed}
        yield Reply(event.request, ListCommittedOffsetsOk(known))


class InTurn:
    """Sends of each key, one step after the other: what a step changes is known to the next.

    `step(key, sends)` answers some of the waiting sends, from the first on, and takes them out of the
    list, to which others may be added meanwhile. If it fails, all that wait are answered so.
    """

    def __init__(self, step: Callable[[str, list[Send]], Process[None]]) -> None:
        self._step = step
        self._waiting: dict[str, list[Send]] = {}  # for keys that have a process

    def send(self, event: Send) -> Process[None]:
        """Take a send; it is answered when its turn has come."""
        if event.key in self._waiting:
            self._waiting[event.key].append(event)
        else:
            self._waiting[event.key] = [event]
            yield Spawn(self._run(event.key))

    def _run(self, key: str) -> Process[None]:
        sends = self._waiting[key]
        try:
            while sends:
                yield from self._step(key, sends)
        except Exception as error:
            for send in sends:
                yield Reply(send.request, failure_of(error))
        del self._waiting[key]
