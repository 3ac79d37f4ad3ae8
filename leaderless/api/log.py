"""A log, as programs use it, and what opens one.

    async with open_log("sqlite:///orders.db") as log:
        offset = await log.append("eu", {"item": 7})
        for record in await log.read("eu"):
            print(record.offset, record.value)

Guarantees: an append that returns is durable, in the log exactly once, and every process sees it in the next
read. The offsets of a key count from 0 without gaps. A read is a contiguous run of a prefix of the log, which
has everything that was acknowledged before the read began. Many tasks may use one log at once: what waits
shares one compare-and-set.

Not guaranteed: an order between keys for a reader, or that an append failed when `Indefinite` was raised.
Cancelling an append does not take it back.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import anyio

from leaderless.api.operating import Operated
from leaderless.api.tail import (
    SEARCHED,
    At,
    InOrder,
    Several,
    Start,
    Tail,
    list_of,
    read_on,
    search,
)
from leaderless.core.headlog.commits import raised
from leaderless.core.headlog.conditions import CLOSED, token_of
from leaderless.core.headlog.pending import OFFSET_BYTES
from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Answer,
    Append,
    AppendOk,
    Failure,
    Offsets,
    Pairs,
    Poll,
    PollOk,
    Reason,
    Refresh,
    RefreshOk,
)
from leaderless.core.scheduler import Scheduler
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Clock, Context, Identity, Options
from leaderless.core.timeouts import StoreTimeouts
from leaderless.errors import Broken, Definite, Unfit
from leaderless.groups.consumer import Consumer
from leaderless.groups.cursors import Cursors, require_offset
from leaderless.groups.members import IDLE_S, LATENCY_S, Members, Membership
from leaderless.groups.redrive import Redriven, redrive
from leaderless.hosting.data import Data, Draft, are_large, require_key
from leaderless.hosting.host import Host, Room, Task, beside, error_of
from leaderless.hosting.named import Named
from leaderless.hosting.place import Bounds, registers_of
from leaderless.hosting.reads import Looked, Record
from leaderless.hosting.surroundings import REAL, Surroundings
from leaderless.peers.lines import Peers
from leaderless.store.port import Store
from leaderless.store.values import Value
from leaderless.store.wrapped import Counted
from leaderless.upkeep.maintenance import Maintenance

Headers: TypeAlias = Mapping[str, str] | None
Condition: TypeAlias = tuple[Offsets, Offsets]  # the end that the key must have, and its token


class Log(Operated):
    """A log that `open_log` opened. Every method may raise `LogError`.

    `make_peers`: its peers, by its writer; `hand_overs`: their counts.
    """

    # `host` must run, and `chores` should; `leaves` and `ends` should be called before their end.

    def __init__(
        self,
        store: Store,
        bounds: Bounds,
        around: Surroundings = REAL,
        make_peers: Callable[[str], Peers] = Peers,
    ) -> None:
        self._store = store = Counted(store)
        self._around = around
        limits, pace = bounds.limits, bounds.pace
        self._limits = limits
        writer = around.name()  # unique, so that no two lives share a batch's name
        clock = Clock(around.now)
        self._peers = peers = make_peers(writer)
        self.hand_overs: Counter[str] = peers.counts
        options = Options(
            freshness_s=0.0,
            limits=limits,
            pace=pace,
            shape=bounds.shape,
            peers=peers,
        )
        identity = Identity(peers.node, (peers.node,), writer)
        context = Context(identity, clock, options, around.trace(identity))
        self._strategy = LeaderlessLog(context, around.policy)
        scheduler = Scheduler(StoreTimeouts(pace))
        machine = Machine(self._strategy, limits, clock, scheduler, clients_leave=False)
        self.host: Host = Host(machine, registers_of(store, bounds), peers.carry_out)
        peers.take = self.host.take
        sizes = bounds.inline_bytes, bounds.value_bytes
        self.data: Data = Data(store, *sizes, around, compresses=bounds.shape.compresses)
        self.named: Named = Named(self.host, self._strategy, self.data, self._epoch_for, limits)
        self.cursors: Cursors = Cursors(store, writer, limits.client_patience_s, self._end_after)
        self.maintenance: Maintenance = Maintenance(store, self.host, bounds, around)
        self.chores: list[Task] = [
            partial(self.maintenance.compact_now_and_then, self._strategy),
            peers.run,
        ]
        self.leaves: Callable[[], Awaitable[None]] = peers.leave
        self.ends: Callable[[float], Awaitable[None]] = partial(
            self.maintenance.end, self._strategy
        )
        if bounds.shape.sliced:
            self.chores.append(self.maintenance.merge_now_and_then)
        self._room = Room(limits.waiting_bytes // 2)

    def __repr__(self) -> str:
        return f"<Log {self._store.url}>"

    # ------------------------------------------------------------ records

    async def append(
        self,
        key: str,
        value: Value,
        headers: Headers = None,
        *,
        expected: int | None = None,
        token: int | None = None,
    ) -> int:
        """Append a value, JSON or bytes, to `key`; returns its offset. `headers`: texts beside it.

        `expected`: the only offset that it may get. `token`: the key may have no higher one.

        Raises `OffsetConflict`, `StaleToken`, `KeyClosed` or another `Definite`: it is not in the log. Raises
        `Indefinite`: it may be.
        """
        require_key(key)
        [offset] = await self._append_all(key, [self.data.draft(value, headers)], expected, token)
        return offset

    async def append_many(
        self,
        key: str,
        values: InOrder[Value],
        headers: Headers = None,
        *,
        expected: int | None = None,
        token: int | None = None,
    ) -> list[int]:
        """Append values to `key` at consecutive offsets, all or none; returns these.

        `headers`: of each; `expected`: the first offset; `token`, and what it raises: as `append`.
        """
        require_key(key)
        drafts = [self.data.draft(value, headers) for value in list_of("values", values, Mapping)]
        if not drafts:
            raise Unfit("append_many needs at least one value")
        return await self._append_all(key, drafts, expected, token)

    async def close(self, key: str) -> int:
        """End a `key` for ever; returns where it ends. To close it again changes nothing.

        Appends raise `KeyClosed`, and so does a `read` from its end on; a `tail` ends. Raises as `append`.
        """
        require_key(key)
        require_key(name := token_of(key))
        if self._strategy.view.tokens.get(name) != CLOSED:
            answer = await self._append(key, [], ({}, {name: CLOSED}))
            if not isinstance(answer, AppendOk):
                raise error_of(answer, self.host.registers)
        return self._strategy.view.end(key)

    async def _append_all(
        self, key: str, drafts: list[Draft], expected: int | None, token: int | None
    ) -> list[int]:
        is_free = expected is None and token is None
        condition: Condition = ({}, {}) if is_free else _condition(key, expected, token)
        until = anyio.current_time() + self._limits.client_patience_s
        while True:
            answer = await self._append(key, drafts, condition)
            if isinstance(answer, AppendOk):
                first = answer.offsets[key]
                return [*range(first, first + len(drafts))]
            is_over = isinstance(answer, Failure) and answer.reason is Reason.OTHER_EPOCH
            if not is_over:
                raise error_of(answer, self.host.registers)
            if anyio.current_time() >= until:
                raise Definite(
                    "its large values were written in an epoch that is over: append it again"
                )

    async def _append(self, key: str, drafts: Sequence[Draft], condition: Condition) -> Answer:
        """Try it once. With large values it gets into the log in an epoch that is known before, or never."""
        expected, tokens = condition
        if expected:  # what this process knows may be old
            await self._end_after(key, expected[key] - 1)
        epoch = await self._epoch_for(drafts) if are_large(drafts) else None
        messages = await self.data.messages(drafts)
        size = sum(message.size for message in messages) + len(drafts) * len(key)
        if tokens:
            size += len(key) + OFFSET_BYTES
        if len(drafts) > 1 and size > self._limits.batch_bytes:
            text = f"values of {size} bytes together; {self._limits.batch_bytes} fit into one batch"
            raise Unfit(f"{text}: append them in several calls")
        appends = {key: [message.json for message in messages]} if messages else {}
        self._peers.appends()
        async with self._room.of(size):
            return await self.host.ask(
                lambda request: Append(request, appends, size, epoch, None, expected, tokens)
            )

    async def _epoch_for(self, drafts: Sequence[Draft]) -> int:
        """An epoch that the log has reached, for objects that are not written yet.

        It may be over, or be none but the first: then what refers to the objects is refused.
        """
        if self._strategy.epoch is None and are_large(drafts):
            await self._look()  # rather than write objects in vain
        return self._strategy.epoch or 0

    async def append_named(
        self, writer: str, seq: int, records: Sequence[tuple[str, Value]]
    ) -> None:
        """Append all `records`, pairs of key and value, as the batch `[writer, seq]`, unless it is in the log.

        To repeat a call is safe, also from another process: see
        `leaderless.hosting.named`. The batch may have `batch_bytes`. Raises as `append`.
        """
        for key, _ in records:
            require_key(key)
        await self.named.append(writer, seq, records)

    async def has_named(self, writer: str, seq: int) -> bool:
        """Whether the log has the batch `seq` of `writer`, or a later one."""
        await self._look()
        return self.named.contains(writer, seq)

    @property
    def batch_bytes(self) -> int:
        """About how many bytes of keys and values fit into one batch."""
        return self._limits.batch_bytes

    async def read(
        self,
        key: str,
        offset: int = 0,
        limit: int = 100,
        at: At | None = None,
        last: int | None = None,
    ) -> list[Record]:
        """The records of `key` from `offset` on, in order, without a gap: `limit` of them, or all there are.

        `at`: a time in place of an offset; see `offset_at`. `last`: so many newest records, alone.

        Raises `OffsetOutOfRange` when a retention has deleted the record at `offset`.

        A read that may end with the newest record looks at the log first. One that ends before what this
        process knows does not: for 30 s it may return what a retention has deleted, or longer, from memory.
        """
        if bool(offset) + (at is not None) + (last is not None) > 1:
            raise Unfit(f"of offset, at and last one may be given, got {offset}, {at} and {last}")
        start, view = offset if at is None else await self.offset_at(key, at), self._strategy.view
        if last is not None:
            if type(last) is not int or last < 1:
                raise Unfit(f"last must be an int, 1 or more, got {last!r}")
            end = (await self.keys()).get(key, 0)
            if not end:
                return []
            start, limit = max(0, end - last), min(last, end)
        return await read_on(self, key, start, limit, view.end, anywhere=last is not None)

    async def offset_at(self, key: str, at: At) -> int:
        """The offset of the first record of `key` that was committed at `at` or later, or the next one.

        `at`: a `datetime` with a time zone, or seconds since 1970. Raises `Unfit` for others, and where the
        newest record of the key has no time.
        """
        require_key(key)
        end = (await self.keys()).get(key, 0)
        return await search(lambda offset: self._poll({key: offset}, SEARCHED), key, at, end)

    async def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        """Records of several keys from one state of the log; a key without records is left out.

        `offsets`: of each key the first offset that is wanted; `limit`: the most records of one key.

        They have about 1 MiB together: where there is more, keys have fewer, and later ones none. Of a key
        whose oldest records a retention has deleted, they begin with the first that is left.
        """
        return (await self.look(offsets, limit)).records

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        """See `read_many`: its records (`offsets`, `limit`), and keys that lost records to a retention."""
        if limit < 1:
            raise Unfit(f"limit must be at least 1, got {limit}")
        for key, offset in offsets.items():
            require_key(key)
            require_offset(offset)
        found = await self._poll(offsets, limit)
        view = self._strategy.view
        closed = [
            key
            for key, offset in offsets.items()
            if view.tokens.get(token_of(key)) == CLOSED and offset >= view.end(key)
        ]
        records: dict[str, list[Record]] = {}
        lost: dict[str, int] = {}
        for key, pairs in found.items():
            try:
                records[key] = await self.data.records(key, pairs)
            except Broken:  # unless a retention has deleted what this process had in memory
                lost[key] = (await self.maintenance.starts()).get(key, 0)
                if lost[key] <= pairs[0][0]:
                    raise
        # An offset below the first one in memory is in a run: no run has it any more.
        left = {key: some[0].offset for key, some in records.items()} or view.first
        earliest = {key: left[key] for key in offsets if left.get(key, 0) > offsets[key]}
        if lost:  # their other records may be there
            records |= (await self.look(lost, limit)).records
        return Looked(records, earliest | lost, closed)

    async def _poll(self, offsets: Mapping[str, int], limit: int) -> dict[str, Pairs]:
        poll = partial(Poll, offsets={**offsets}, messages_max=limit)
        answer = await self.host.ask_again(poll, self._limits.client_patience_s)
        assert isinstance(answer, PollOk), answer
        return answer.msgs

    async def _look(self) -> None:
        """Bring the view up to date. Raises `Unreachable`: a look changes nothing."""
        answer = await self.host.ask_again(Refresh, self._limits.client_patience_s)
        assert isinstance(answer, RefreshOk), answer

    def tail(
        self,
        keys: Several[str],
        offset: Start = "latest",
        latency_s: float = LATENCY_S,
        at: At | None = None,
    ) -> AsyncIterator[Record]:
        """Records of `keys` from `offset` on, and new ones as they come, until all keys are closed.

        `offset`: "latest" (what comes from now on), "earliest", a number for all keys, or one a key. `at`: a
        time in place of it; see `offset_at`.
        `latency_s`: how many seconds late a record may come: the longest pause between two looks.

        The keys take turns, and the iterator goes on after an error: see `leaderless.api.tail`. Raises `Unfit`.
        """
        start = offset if at is None else partial(self.offset_at, at=at)
        return Tail(self, keys, start, latency_s, self._limits.poll_messages)

    async def keys(self) -> dict[str, int]:
        """The keys of the log, each with the offset that its next record gets."""
        await self._look()
        view = self._strategy.view
        return {key: view.end(key) for key in sorted({*view.first, *view.messages})}

    # ------------------------------------------------------------ cursors

    async def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Remember for a group of consumers the last records that it processed: `offsets` by key.

        It is durable when this returns, and never goes back: the highest one holds. Raises `Unfit` for an
        offset of which there is no record yet.
        """
        self.host.require_open()
        await self.cursors.commit(group, offsets)

    async def _end_after(self, key: str, offset: int) -> int:
        """The end of a key, which is looked at unless it is known to be after an offset."""
        if offset >= self._strategy.view.end(key):
            await self._look()
        return self._strategy.view.end(key)

    async def committed(self, group: str, keys: Several[str]) -> dict[str, int]:
        """The committed offset of each of `keys` of a group; a key without one is left out."""
        self.host.require_open()
        return await self.cursors.committed(group, list_of("keys", keys))

    async def committed_by_nodes(self) -> dict[str, int]:
        """See `docs/log/groups.md`: the offsets that clients of nodes committed, which have no group."""
        held = await self.cursors.of_nodes()
        # What a register has not is in the log, as far as it was when that was read.
        await self._look()
        return raised(held, self._strategy.view.committed)

    async def redrive(
        self, group: str, keys: Several[str] = (), to: str | None = None
    ) -> list[Redriven]:
        """Append the records again that a group has buried, of `keys` or all, each once; `to`: to this key.

        See `leaderless.groups.redrive`.
        """
        require_key("" if to is None else to)
        return await redrive(self, self.named, group, list_of("keys", keys), to)

    @asynccontextmanager
    async def consumer(
        self,
        group: str,
        keys: Several[str],
        *,
        lease_s: float = 10.0,
        failures_max: int = 5,
        keys_max: int | None = None,
        latency_s: float = LATENCY_S,
        idle_s: float = IDLE_S,
    ) -> AsyncIterator[Consumer]:
        """A member of a group of consumers, for `async with`; see `leaderless.groups.consumer`.

        Args:
            group: the name of the group.
            keys: what the group consumes; each has one owner among the members.
            lease_s: how long a dead member keeps its keys, in seconds. A program whose event loop stands still
                for longer loses its keys, and the failure of a record is counted: run what blocks in a thread.
            failures_max: a record that has failed so often becomes a dead letter.
            keys_max: the most keys that this member takes; None: any number.
            latency_s: how many seconds late a record may come: the longest pause between two looks at keys
                without news.
            idle_s: after so many seconds without a call of the iterator or `batch` the other members get the
                keys that have no record under way.

        Raises:
            Unfit: a name or a number cannot be.
        """
        names = tuple(list_of("keys", keys))
        membership = Membership(group, names, lease_s, failures_max, keys_max, latency_s, idle_s)
        members = Members(self._store, membership, self._around.name(), self.maintenance.starts)
        consumer = Consumer(self, self.named, self.cursors, members)
        async with beside(consumer.run):
            yield consumer


def _condition(key: str, expected: int | None, token: int | None) -> Condition:
    """The condition of an append to `key`. Raises `Unfit`."""
    ends: Offsets = {}
    tokens: Offsets = {}
    if expected is not None:
        require_offset(expected)
        ends[key] = expected
    if token is not None:
        if type(token) is not int or not 0 <= token < CLOSED:
            raise Unfit(f"a token must be an int from 0 to 2^63 - 2, got {token!r}")
        tokens[name := token_of(key)] = token
        require_key(name)
    return ends, tokens
