"""A group of consumers whose members are programs beside a bucket, and what it promises.

A program becomes a member for a while, then it hands its keys over; or it dies as one. A member takes records,
works, and acknowledges them, or says that one failed. Some records always fail, so they are buried. Other
programs consume by hand, in a group of their own.

| law | what must hold |
|---|---|
| `OneLiveOwner` | who gets a record owns its key; who lives keeps it; who lost it is refused |
| `ConsumedInOrder` | a key's record comes only when all before it were processed, and a batch leaves none out |
| `LastTryAlone` | a record that its next failure buries comes alone |
| `PassedInTurn` | a cursor passes what was processed, has a letter, or is told to be lost |
| `FailuresCounted` | a record has failed as often as members said so, or were put out |
| `BuriedOnce` | a letter comes once, when its record has failed so often and is next |
| `AckTells` | by hand: who is told that it advanced the cursor did so, and nobody else |
| `KeysOwned`, `ConsumedAtLast` | in the end living members soon own all keys, and the group passes all sends |
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random

import anyio
import orjson

from leaderless.api.log import Log
from leaderless.core.messages import Entry
from leaderless.errors import Indefinite, LogError, OffsetOutOfRange
from leaderless.groups.consumer import Consumer, ack, consume
from leaderless.groups.cursors import Cursor, cursor_of
from leaderless.groups.members import Roster, Tenure, roster_of
from leaderless.hosting.named import letters_of
from leaderless.store.names import name_of
from leaderless.store.port import Store
from simulation.oracle import Body, raise_to, require

GROUP, HANDS = "members", "hands"
BY_HAND = 0.25  # of the programs that consume
LEASE_S = 2.0
FAILURES_MAX = 2
RECORDS_MAX = 10  # of a batch
WORK_S = 0.5  # at most
PATIENCE_S = 1.0  # at most, until it tries again
FAILING, BLOCKING = 0.1, 0.05  # of the batches
BAD = 7  # one record of so many always fails
ROUNDING_S = 1e-6


class Group:
    """What its members say of it, and what its objects held: of each key the offset of the last record.

    `now_s`: the time of all processes. `went_on`: when each process last did so after it had stood still.
    `stand_still`: lets a process do that for longer than a lease, as code does that blocks its loop.
    """

    def __init__(
        self,
        random: Random,
        now_s: Callable[[], float],
        went_on: Mapping[str, float],
        stand_still: Callable[[str], object],
    ) -> None:
        self._random, self._now_s = random, now_s
        self._went_on, self._stand_still = went_on, stand_still
        # A member has done its work, and says so; or the group was told that a retention had deleted these.
        self._settled: dict[str, int] = {}
        self.passed: dict[str, int] = {}  # by the cursor
        self._cursors: dict[tuple[str, str], Cursor] = {}  # by group and key
        self._letters: set[tuple[str, int]] = set()
        self._failures, self._counted = Counter[str](), Counter[str]()  # said; in cursors
        self._roster = Roster()
        self._beats: dict[str, float] = {}  # when they came to the store
        self._advanced: set[tuple[str, int]] = set()  # by hand, as somebody was told
        self._open = Counter[tuple[str, int]]()  # acknowledgements by hand without an answer

    async def join(self, log: Log, _store: Store, body: Body) -> None:
        """Be a member for so many seconds, and then hand over; or consume by hand."""
        keys, by_hand = body["keys"], not body["calm"] and self._random.random() < BY_HAND
        group = log.consumer(GROUP, keys, lease_s=LEASE_S, failures_max=FAILURES_MAX)
        with anyio.move_on_after(body["seconds"]):
            while by_hand:
                with suppress(LogError):
                    await self._by_hand(log, self._random.choice(keys))
            async with group as member:
                while True:
                    with suppress(LogError):  # such as `NotOwner`
                        try:
                            await self._consume(member, body["node"], calm=body["calm"])
                        except OffsetOutOfRange as gone:
                            raise_to(self._settled, {gone.key: gone.earliest - 1})
                            await log.commit(GROUP, {gone.key: gone.earliest - 1})

    def behind(self, ends: Mapping[str, int]) -> list[str]:
        """The keys of which the group has not passed the last offset."""
        return [key for key, offset in ends.items() if self.passed.get(key, -1) < offset]

    def free(self) -> list[str]:
        """The keys that no living member owns."""
        alive = {name for name in self._roster.members if self._idle_s(name) <= LEASE_S}
        return [key for key, (_, owner, _) in self._roster.keys.items() if owner not in alive]

    def _idle_s(self, member: str) -> float:
        return self._now_s() - self._beats[member]

    # ------------------------------------------------------------ what a member gets

    async def _consume(self, member: Consumer, node: str, *, calm: bool = False) -> None:
        """Take records, and settle them."""
        records = await member.batch(RECORDS_MAX)
        key, offsets = records[0].key, [each.offset for each in records]
        due = max(self._settled.get(key, -1), self.passed.get(key, -1)) + 1
        in_order = offsets[0] <= due and offsets == [*range(offsets[0], offsets[-1] + 1)]
        require(in_order, "ConsumedInOrder", f"{offsets} of {key} are given, {due} was due")
        epoch = self._require_owner(member, node, key, len(offsets))
        if not calm and self._random.random() < BLOCKING:
            self._stand_still(node)
        await anyio.sleep(self._random.random() * WORK_S)
        bad = [each for each in records if each.offset % BAD == BAD - 1]
        bad += records[-1:] * (self._random.random() < FAILING)
        raise_to(self._settled, {key: bad[0].offset - 1 if bad else offsets[-1]})
        self._failures[key] += bool(bad)
        settle = partial(member.fail, bad[0]) if bad else partial(member.ack, records[-1])
        cursor = self._cursors[GROUP, key]
        while True:  # `Definite` ends it
            with suppress(Indefinite), anyio.move_on_after(self._random.random() * PATIENCE_S):
                await settle()
                break
        text = f"{offsets} of {key} are settled in {epoch}: {cursor}"
        require(cursor.epoch <= epoch, "OneLiveOwner", text)

    def _require_owner(self, member: Consumer, node: str, key: str, count: int) -> int:
        """The member gets so many records of a key, which it owns; returns its epoch."""
        epoch, name = member._owned[key].epoch, member._ownership._members.name
        tenure, cursor = self._roster.keys[key], self._cursors[GROUP, key]
        stood_still = self._went_on.get(node, 0.0) >= self._beats[name]
        owns = stood_still or (tenure.epoch, tenure.owner) == (epoch, name)
        text = f"{name} gets {key} in {epoch}: {tenure}, {cursor}"
        require(owns and cursor.epoch >= epoch, "OneLiveOwner", text)
        alone = count == 1 or cursor.failures + 1 < FAILURES_MAX or cursor.epoch != epoch
        require(alone, "LastTryAlone", f"{count} records of {key} come: {cursor}")
        return epoch

    async def _by_hand(self, log: Log, key: str) -> None:
        """Take a record, and acknowledge it."""
        record = await consume(log.read, log.cursors, HANDS, key)
        await anyio.sleep(self._random.random() * WORK_S)
        if record is None:
            return
        call, before = (key, record.offset), self._cursors.get((HANDS, key), Cursor())
        self._open[call] += 1  # for ever, if it hears no answer
        status, at = await ack(log.cursors, HANDS, key, record.offset)
        self._open[call] -= 1
        after, mine = self._cursors[HANDS, key], status == "advanced"
        # What came on top of a change hides it.
        others = call in self._advanced or self._open[call] > 0 or at > record.offset + 1
        fits = call not in self._advanced if mine else others and status == "already_processed"
        text = f"{call}: {status}, {at}; {before}, {after}"
        require(fits and before.next <= at <= after.next, "AckTells", text)
        self._advanced |= {call} if mine else set()

    # ------------------------------------------------------------ what the store holds

    def changed(self, name: str, value: bytes | None, added: Sequence[Entry]) -> None:
        """An object holds `value`, None: it was deleted; the log has these entries more."""
        for entry in added:
            # By its name, as what it holds may be in an object of its own.
            if letters_of(GROUP) in entry.appends:
                self._buried(name_of(entry.writer.rpartition("/")[2]), entry.seq)
        match name.split("/"):
            case ["group", group, "cursor", key] if value:
                self._cursor_changed(group, name_of(key), cursor_of(orjson.loads(value)))
            case ["group", group, "members"] if value and group == GROUP:
                self._roster_changed(roster_of(orjson.loads(value)))

    def _buried(self, key: str, offset: int) -> None:
        cursor = self._cursors[GROUP, key]
        once = (cursor.next, (key, offset) in self._letters) == (offset, False)
        due = once and cursor.failures >= FAILURES_MAX
        require(due, "BuriedOnce", f"{key} {offset} at {cursor}")
        self._letters.add((key, offset))

    def _cursor_changed(self, group: str, key: str, new: Cursor) -> None:
        old = self._cursors.get((group, key), Cursor())
        self._cursors[group, key] = new
        if group != GROUP:
            return
        self.passed[key], last = new.next - 1, self._settled.get(key, -1)
        skipped = {(key, n) for n in range(max(old.next, last + 1), new.next)} - self._letters
        require(not skipped, "PassedInTurn", f"{skipped} with no letter, behind {last}: {new}")
        self._counted[key] += new.next == old.next and new.failures > old.failures
        text = f"{key} counts {self._counted[key]} for {self._failures[key]}: {new}"
        require(self._counted[key] <= self._failures[key], "FailuresCounted", text)

    def _roster_changed(self, new: Roster) -> None:
        old, self._roster = self._roster, new
        for name in old.members.keys() - new.members.keys():
            own = [key for key, its in old.keys.items() if its.owner == name]
            out = any(new.keys[key].owner for key in own)  # who leaves gives them back
            text = f"{name} is out after {self._idle_s(name)} s, and had {own}"
            require(not out or self._idle_s(name) >= LEASE_S - ROUNDING_S, "OneLiveOwner", text)
        beating = [name for name, its in new.members.items() if its != old.members.get(name)]
        self._beats |= dict.fromkeys(beating, self._now_s())
        for key, its in new.keys.items():
            was = old.keys.get(key, Tenure())
            self._failures[key] += its.epoch > was.epoch and was.owner is not None
            raise_to(self._settled, {key: its.first - 1})
