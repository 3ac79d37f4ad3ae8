"""The recovery of a ledger (specs/BookKeeper), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from specs.second.explorer import with_item

Ensemble = tuple[int, ...]
Fragment = tuple[int, Ensemble]  # its first entry, its bookies


class Bookie(NamedTuple):
    stored: frozenset[int] = frozenset()
    fenced: bool = False
    lac: int = 0  # the highest last add confirmed that came with an entry


class Add(NamedTuple):
    """The owner's request to store an entry."""

    bookie: int
    entry: int
    lac: int


class Recovery(NamedTuple):
    """`waiting` are the bookies that have not answered the requests of this phase."""

    phase: str = "idle"
    fragments: tuple[Fragment, ...] = ()
    entry: int = 0
    waiting: frozenset[int] = frozenset()
    answers: frozenset[tuple[int, object]] = frozenset()

    def with_answer(self, value: object) -> frozenset[int]:
        """The bookies that gave this answer."""
        return frozenset(bookie for bookie, answer in self.answers if answer == value)

    @property
    def answered(self) -> frozenset[int]:
        """The bookies that gave any answer."""
        return frozenset(bookie for bookie, _ in self.answers)


class State(NamedTuple):
    version: int
    status: str
    fragments: tuple[Fragment, ...]
    last: int
    bookies: tuple[Bookie, ...]
    adds: frozenset[Add]  # the owner's, on their way
    changes: int
    owner: str
    ensemble: Ensemble
    sent: int
    acks: frozenset[tuple[int, int]]  # entry, bookie
    confirmed: tuple[int, ...]
    recovery: Recovery


@dataclass(frozen=True)
class BookKeeper:
    """The repaired protocol; each flag is another decision of the manifest."""

    bookies: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    max_entries: int
    max_changes: int
    reads_do_not_fence: bool = False
    reads_from_lac: bool = False
    reads_from_new_ensemble: bool = False
    reads_wait_for_all: bool = False
    one_missing: bool = False
    one_fenced: bool = False
    one_written_back: bool = False
    one_acknowledges: bool = False
    any_entry: bool = False
    lac_runs_ahead: bool = False
    symmetric: bool = True

    def initial(self) -> list[State]:
        """An open ledger without entries, on any ensemble."""
        empty = (Bookie(),) * self.bookies
        nothing = frozenset[Add]()
        return [
            State(
                1,
                "OPEN",
                ((1, e),),
                0,
                empty,
                nothing,
                0,
                "writing",
                e,
                0,
                frozenset(),
                (),
                Recovery(),
            )
            for e in permutations(range(self.bookies), self.ensemble_size)
        ]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """The owner writes, requests arrive, the recoverer works."""
        yield from self._owner(state)
        yield from self._arrivals(state)
        yield from self._recover(state, state.recovery)

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/BookKeeper."""
        return {
            "TypeOK": lambda s: all(b.lac <= _lac(s) for b in s.bookies),
            "NoDivergenceBetweenWriterAndMetaData": lambda s: (
                s.status != "CLOSED" or all(entry <= s.last for entry in s.confirmed)
            ),
            "NoOutOfOrderEntries": lambda s: s.confirmed == tuple(range(1, len(s.confirmed) + 1)),
            "AllCommittedEntriesReachAckQuorum": self._on_ack_quorum,
            "OnlyValidFragments": self._valid_fragments,
        }

    def representative(self, state: State) -> State:
        """The least of the states that differ only in the bookies' names."""
        if not self.symmetric:
            return state
        orders = permutations(range(self.bookies))
        return min((_renamed(state, order) for order in orders), key=_key)

    def _write_set(self, ensemble: Ensemble, entry: int) -> list[int]:
        return [ensemble[(entry + i) % len(ensemble)] for i in range(self.write_quorum)]

    def _adds(self, state: State, entry: int, bookies: list[int]) -> frozenset[Add]:
        lac = entry if self.lac_runs_ahead else _lac(state)
        return frozenset(Add(bookie, entry, lac) for bookie in bookies)

    def _owner(self, state: State) -> Iterator[tuple[str, State]]:
        if state.owner != "writing":
            return
        if state.sent < self.max_entries:
            entry = state.sent + 1
            new = self._adds(state, entry, self._write_set(state.ensemble, entry))
            yield "AddEntry", state._replace(sent=entry, adds=state.adds | new)
        for entry in range(1, state.sent + 1):
            yield from self._confirm(state, entry)
        if state.status == "OPEN":
            yield (
                "Close",
                state._replace(
                    version=state.version + 1, status="CLOSED", last=_lac(state), owner="closed"
                ),
            )
            if state.changes < self.max_changes and _lac(state) < state.sent:
                yield from self._change_ensemble(state)

    def _confirm(self, state: State, entry: int) -> Iterator[tuple[str, State]]:
        if entry in state.confirmed or not (self.any_entry or entry == _lac(state) + 1):
            return
        acked = [b for b in self._write_set(state.ensemble, entry) if (entry, b) in state.acks]
        if len(acked) >= (1 if self.one_acknowledges else self.ack_quorum):
            yield "Confirm", state._replace(confirmed=(*state.confirmed, entry))

    def _change_ensemble(self, state: State) -> Iterator[tuple[str, State]]:
        first = _lac(state) + 1
        for ensemble, new in self._replacements(state.ensemble, list(state.ensemble)):
            adds = state.adds
            for entry in range(first, state.sent + 1):
                if new in self._write_set(ensemble, entry):
                    adds |= self._adds(state, entry, [new])
            yield (
                "ChangeEnsemble",
                state._replace(
                    version=state.version + 1,
                    fragments=_with_fragment(state.fragments, first, ensemble),
                    adds=adds,
                    ensemble=ensemble,
                    changes=state.changes + 1,
                ),
            )

    def _replacements(
        self, ensemble: Ensemble, leaving: list[int]
    ) -> Iterator[tuple[Ensemble, int]]:
        for new in set(range(self.bookies)) - set(ensemble):
            for old in leaving:
                yield tuple(new if bookie == old else bookie for bookie in ensemble), new

    def _arrivals(self, state: State) -> Iterator[tuple[str, State]]:
        for add in state.adds:
            arrived = state._replace(adds=state.adds - {add})
            bookie = state.bookies[add.bookie]
            if bookie.fenced:
                stopped = "stopped" if state.owner == "writing" else state.owner
                yield "Refuse", arrived._replace(owner=stopped)
                continue
            stored = Bookie(bookie.stored | {add.entry}, False, max(bookie.lac, add.lac))
            arrived = _with_bookie(arrived, add.bookie, stored)
            if state.owner == "writing":
                arrived = arrived._replace(acks=state.acks | {(add.entry, add.bookie)})
            yield "Store", arrived
        for number in state.recovery.waiting:
            yield self._answer(state, number)

    def _answer(self, state: State, number: int) -> tuple[str, State]:
        recovery, bookie = state.recovery, state.bookies[number]
        answer: object
        if recovery.phase == "fencing":
            name, answer, bookie = "Fence", bookie.lac, bookie._replace(fenced=True)
        elif recovery.phase == "reading":
            name, answer = "Read", "found" if recovery.entry in bookie.stored else "missing"
            bookie = bookie._replace(fenced=bookie.fenced or not self.reads_do_not_fence)
        else:
            name, answer = "Copy", "added"
            bookie = bookie._replace(stored=bookie.stored | {recovery.entry})
        recovery = recovery._replace(
            waiting=recovery.waiting - {number}, answers=recovery.answers | {(number, answer)}
        )
        return name, _with_bookie(state, number, bookie)._replace(recovery=recovery)

    def _recover(self, state: State, recovery: Recovery) -> Iterator[tuple[str, State]]:
        match recovery.phase:
            case "idle" if state.status == "OPEN":
                waiting = frozenset(state.fragments[-1][1])
                begun = Recovery("fencing", state.fragments, 0, waiting)
                yield (
                    "StartRecovery",
                    state._replace(version=state.version + 1, status="IN_RECOVERY", recovery=begun),
                )
            case "fencing" if self._covered(recovery):
                lac = max(int(str(answer)) for _, answer in recovery.answers)
                first = lac if self.reads_from_lac else max(lac, recovery.fragments[-1][0] - 1)
                yield "StartReading", self._read(state, first + 1)
            case "reading":
                if recovery.with_answer("found"):
                    ensemble = recovery.fragments[-1][1]
                    to = frozenset(self._write_set(ensemble, recovery.entry))
                    yield "WriteBack", _go(state, "writing back", recovery.entry, to)
                if self._absent(len(recovery.with_answer("missing"))):
                    yield "FindEnd", _go(state, "closing", recovery.entry, frozenset())
            case "writing back":
                written = recovery.answered & set(
                    self._write_set(recovery.fragments[-1][1], recovery.entry)
                )
                if len(written) >= (1 if self.one_written_back else self.ack_quorum):
                    yield "ReadNext", self._read(state, recovery.entry + 1)
                if state.changes < self.max_changes:
                    yield from self._change_recovery_ensemble(state, recovery)
            case "closing" if state.status == "IN_RECOVERY":
                closed = state._replace(
                    version=state.version + 1,
                    status="CLOSED",
                    fragments=recovery.fragments,
                    last=recovery.entry - 1,
                )
                yield "CloseRecovered", _go(closed, "closed", recovery.entry, frozenset())

    def _covered(self, recovery: Recovery) -> bool:
        if self.one_fenced:
            return bool(recovery.answers)
        ensemble = recovery.fragments[-1][1]
        free = (
            set(self._write_set(ensemble, entry)) - recovery.answered
            for entry in range(1, len(ensemble) + 1)
        )
        return all(len(bookies) < self.ack_quorum for bookies in free)

    def _absent(self, missing: int) -> bool:
        if self.reads_wait_for_all:
            return missing >= self.write_quorum
        return missing >= (1 if self.one_missing else self.write_quorum - self.ack_quorum + 1)

    def _read(self, state: State, entry: int) -> State:
        known = state.recovery.fragments if self.reads_from_new_ensemble else state.fragments
        to = frozenset(self._write_set(_ensemble_of(known, entry), entry))
        return _go(state, "reading", entry, to)

    def _change_recovery_ensemble(
        self, state: State, recovery: Recovery
    ) -> Iterator[tuple[str, State]]:
        ensemble = recovery.fragments[-1][1]
        silent = [
            b for b in self._write_set(ensemble, recovery.entry) if b not in recovery.answered
        ]
        for changed, new in self._replacements(ensemble, silent):
            after = recovery._replace(
                fragments=_with_fragment(recovery.fragments, recovery.entry, changed),
                waiting=recovery.waiting | {new},
            )
            yield (
                "ChangeRecoveryEnsemble",
                state._replace(recovery=after, changes=state.changes + 1),
            )

    def _on_ack_quorum(self, state: State) -> bool:
        last = state.last if state.status == "CLOSED" else _lac(state)
        return all(
            sum(
                entry in state.bookies[bookie].stored
                for bookie in self._write_set(_ensemble_of(state.fragments, entry), entry)
            )
            >= self.ack_quorum
            for entry in range(1, last + 1)
        )

    def _valid_fragments(self, state: State) -> bool:
        firsts = [first for first, _ in state.fragments]
        return (
            firsts[0] == 1
            and firsts == sorted(set(firsts))
            and all(len(set(e)) == self.ensemble_size for _, e in state.fragments)
            and (state.status != "CLOSED" or firsts[-1] <= state.last + 1)
        )


def _lac(state: State) -> int:
    return state.confirmed[-1] if state.confirmed else 0


def _go(state: State, phase: str, entry: int, to: frozenset[int]) -> State:
    """The recoverer begins a phase; requests and answers of the one before are forgotten."""
    return state._replace(recovery=Recovery(phase, state.recovery.fragments, entry, to))


def _with_bookie(state: State, number: int, bookie: Bookie) -> State:
    return state._replace(bookies=with_item(state.bookies, number, bookie))


def _with_fragment(
    fragments: tuple[Fragment, ...], first: int, ensemble: Ensemble
) -> tuple[Fragment, ...]:
    kept = fragments[:-1] if fragments[-1][0] == first else fragments
    return (*kept, (first, ensemble))


def _ensemble_of(fragments: tuple[Fragment, ...], entry: int) -> Ensemble:
    """The last fragment that begins at or before the entry, else the first."""
    ensemble = fragments[0][1]
    for first, members in fragments:
        if first <= entry:
            ensemble = members
    return ensemble


def _renamed(state: State, order: tuple[int, ...]) -> State:
    """The state with bookie `order[i]` in place i."""
    place = {old: new for new, old in enumerate(order)}

    def members(ensemble: Ensemble) -> Ensemble:
        return tuple(place[bookie] for bookie in ensemble)

    recovery = state.recovery
    return state._replace(
        fragments=tuple((first, members(e)) for first, e in state.fragments),
        bookies=tuple(state.bookies[old] for old in order),
        adds=frozenset(add._replace(bookie=place[add.bookie]) for add in state.adds),
        ensemble=members(state.ensemble),
        acks=frozenset((entry, place[bookie]) for entry, bookie in state.acks),
        recovery=recovery._replace(
            fragments=tuple((first, members(e)) for first, e in recovery.fragments),
            waiting=frozenset(place[bookie] for bookie in recovery.waiting),
            answers=frozenset((place[bookie], answer) for bookie, answer in recovery.answers),
        ),
    )


def _key(state: State) -> tuple[object, ...]:
    """A total order of states: sets are compared as sorted lists."""
    recovery = state.recovery
    return (
        state.fragments,
        state.ensemble,
        tuple((sorted(b.stored), b.fenced, b.lac) for b in state.bookies),
        sorted(state.adds),
        sorted(state.acks),
        recovery.fragments,
        sorted(recovery.waiting),
        sorted((bookie, str(answer)) for bookie, answer in recovery.answers),
    )
