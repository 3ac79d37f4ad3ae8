"""An election of last resort (specs/UncleanElection), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from specs.second.explorer import with_item

Entry = tuple[int, int]  # the leader's epoch, the message's number
Log = tuple[Entry, ...]


class Replica(NamedTuple):
    """One replica.

    `covers` is the latest epoch whose first entries it has; `follows` the latest epoch in which it
    dropped what its leader lacks; `knows` the (epoch, leader) that it has heard of, None at first.
    """

    log: Log
    covers: int
    follows: int
    knows: tuple[int, int] | None
    up: bool
    in_sync: bool


class State(NamedTuple):
    replicas: tuple[Replica, ...]
    leader: int
    epoch: int
    begins: int  # the length of the leader's log when its epoch began
    committed: Log
    sent: int
    crashes: int


@dataclass(frozen=True)
class UncleanElection:
    """The covered epoch decides; each flag is another decision of the manifest."""

    replicas: int
    min_in_sync: int
    candidates: int
    max_epoch: int
    max_messages: int
    max_crashes: int
    latest_offset: bool = False
    latest_entry: bool = False
    own_epoch: bool = False
    when_truncated: bool = False
    any_length: bool = False
    responsive: bool = False
    epochs_skip: bool = False

    def initial(self) -> list[State]:
        """All replicas are in sync, and any of them leads."""
        return [
            State(
                (Replica((), 1, 1, (1, leader), True, True),) * self.replicas,
                leader,
                1,
                0,
                (),
                0,
                0,
            )
            for leader in range(self.replicas)
        ]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Replicas produce, learn, copy and commit; the controller elects; replicas crash."""
        for number, replica in enumerate(state.replicas):
            if not replica.up:
                yield "Restart", _with(state, number, up=True)
                continue
            yield from self._produce(state, number, replica)
            yield from self._learn(state, number, replica)
            yield from self._follow(state, number, replica)
            if state.crashes < self.max_crashes:
                crashed = _with(state, number, up=False, knows=None)
                yield "Crash", crashed._replace(crashes=state.crashes + 1)
        if _leads(state):
            yield from self._lead(state)
        yield from self._elect(state)

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/UncleanElection."""
        return {
            "TypeOK": self._type_ok,
            "CommittedMessagesNeverLost": lambda s: _begins_with(
                s.replicas[s.leader].log, s.committed
            ),
            "InSyncHasCommitted": lambda s: all(
                _begins_with(r.log, s.committed) for r in s.replicas if r.in_sync
            ),
        }

    def representative(self, state: State) -> State:
        """The least of the states that differ only in the replicas' names.

        A state that does not begin with a least replica is not tried: what comes first in a replica is its own.
        """
        own = [(r.log, r.covers, r.follows, r.knows[0] if r.knows else 0) for r in state.replicas]
        least = min(own)
        orders = (each for each in permutations(range(self.replicas)) if own[each[0]] == least)
        return min((_renamed(state, order) for order in orders), key=_key)

    def _produce(self, state: State, number: int, replica: Replica) -> Iterator[tuple[str, State]]:
        if replica.knows and replica.knows[1] == number and state.sent < self.max_messages:
            log = (*replica.log, (replica.knows[0], state.sent + 1))
            yield "Produce", _with(state, number, log=log)._replace(sent=state.sent + 1)

    def _learn(self, state: State, number: int, replica: Replica) -> Iterator[tuple[str, State]]:
        now = (state.epoch, state.leader)
        if replica.knows and replica.knows[0] == state.epoch:
            return
        if state.leader != number:
            yield "LearnMetadata", _with(state, number, knows=now)
            return
        leads = _with(state, number, knows=now, covers=state.epoch, follows=state.epoch)
        yield "LearnMetadata", leads._replace(begins=len(replica.log))

    def _follow(self, state: State, number: int, replica: Replica) -> Iterator[tuple[str, State]]:
        leader = state.replicas[state.leader]
        if state.leader == number or not _leads(state):
            return
        if not replica.knows or replica.knows[0] != state.epoch:
            return
        if replica.follows < state.epoch:
            common = 0
            for mine, theirs in zip(replica.log, leader.log, strict=False):
                if mine != theirs:
                    break
                common += 1
            yield "Truncate", self._copied(state, number, leader.log[:common])
        elif len(replica.log) < len(leader.log):
            # It copies the entry that comes next by number, whatever its own log holds.
            log = (*replica.log, leader.log[len(replica.log)])
            yield "Fetch", self._copied(state, number, log)

    def _copied(self, state: State, number: int, log: Log) -> State:
        covers = state.replicas[number].covers
        if self.when_truncated or len(log) >= state.begins:
            covers = state.epoch
        return _with(state, number, log=log, covers=covers, follows=state.epoch)

    def _lead(self, state: State) -> Iterator[tuple[str, State]]:
        leader = state.replicas[state.leader]
        followers = [r for n, r in enumerate(state.replicas) if n != state.leader]
        if sum(r.in_sync for r in state.replicas) >= self.min_in_sync:
            for length in range(len(state.committed) + 1, len(leader.log) + 1):
                copied = all(
                    r.follows == state.epoch and len(r.log) >= length
                    for r in followers
                    if r.in_sync
                )
                if copied and self._may_commit(state, length):
                    yield "Commit", state._replace(committed=leader.log[:length])
        for number, replica in enumerate(state.replicas):
            if number == state.leader:
                continue
            if replica.in_sync:
                yield "Shrink", _with(state, number, in_sync=False)
            elif replica.up and self._caught_up(state, replica):
                yield "Expand", _with(state, number, in_sync=True)

    def _may_commit(self, state: State, length: int) -> bool:
        if self.any_length:
            return True
        if self.own_epoch:
            return state.replicas[state.leader].log[length - 1][0] == state.epoch
        return length >= state.begins

    def _caught_up(self, state: State, replica: Replica) -> bool:
        if self.responsive:
            return replica.knows is not None and replica.knows[0] == state.epoch
        leader = state.replicas[state.leader]
        return replica.follows == state.epoch and len(replica.log) == len(leader.log)

    def _elect(self, state: State) -> Iterator[tuple[str, State]]:
        if state.epoch >= self.max_epoch and not self.epochs_skip:
            return
        alive = [n for n, r in enumerate(state.replicas) if r.up]
        in_sync = [n for n in alive if state.replicas[n].in_sync]
        leads = state.leader in alive
        for number in in_sync:
            if leads and number != state.leader:
                yield "MoveLeader", _elected(state, number)
            if not leads:
                # The dead leader leaves the set.
                after = _with(state, state.leader, in_sync=False)
                yield "ElectClean", _elected(after, number)
        if not in_sync and len(alive) >= self.candidates:
            best = max((self._rank(state.replicas[n]) for n in alive), default=None)
            for number in alive:
                if self._rank(state.replicas[number]) == best:
                    alone = tuple(
                        r._replace(in_sync=n == number) for n, r in enumerate(state.replicas)
                    )
                    yield "ElectUnclean", _elected(state._replace(replicas=alone), number)

    def _rank(self, replica: Replica) -> tuple[int, int]:
        length = len(replica.log)
        if self.latest_offset:
            return 0, length
        if self.latest_entry:
            return replica.log[-1][0] if replica.log else 0, length
        return replica.covers, length

    def _type_ok(self, state: State) -> bool:
        return (
            state.epoch <= self.max_epoch
            and any(r.in_sync for r in state.replicas)
            and all(r.covers <= r.follows <= state.epoch for r in state.replicas)
        )


def _with(state: State, number: int, **changes: object) -> State:
    replica = state.replicas[number]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(replicas=with_item(state.replicas, number, replica))


def _leads(state: State) -> bool:
    leader = state.replicas[state.leader]
    return leader.up and leader.knows == (state.epoch, state.leader)


def _elected(state: State, number: int) -> State:
    return state._replace(leader=number, epoch=state.epoch + 1)


def _begins_with(log: Log, start: Log) -> bool:
    return log[: len(start)] == start


def _renamed(state: State, order: tuple[int, ...]) -> State:
    """The state with replica `order[i]` in place i."""
    place = {old: new for new, old in enumerate(order)}
    replicas = tuple(
        r._replace(knows=(r.knows[0], place[r.knows[1]]) if r.knows else None)
        for r in (state.replicas[old] for old in order)
    )
    return state._replace(replicas=replicas, leader=place[state.leader])


def _key(state: State) -> tuple[object, ...]:
    replicas = tuple(r._replace(knows=r.knows or (0, 0)) for r in state.replicas)
    return (replicas, *state[1:])
