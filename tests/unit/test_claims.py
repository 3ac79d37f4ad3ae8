"""Task claiming: one worker a task, whoever crashes and whatever answers get lost."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderless.core.claims import (
    FAILURES_MAX,
    Claim,
    Claims,
    LeaseLost,
    claim_of,
)
from leaderless.core.coordination import Misfit, StoreSilent, raise_to
from leaderless.core.messages import Get, Ok, Outcome, Put, StoreOp
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from tests.driver import FATES, Driver
from tests.ported import Store

REGISTER = "claim/work"


class Worker(Driver):
    """One start of a node, with its claims."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__(store.apply)
        self.claims = Claims(self.clock, REGISTER, name, Pace())


@pytest.fixture
def store() -> Store:
    return Store()


def held(store: Store) -> Any:
    return store.registers[REGISTER]


# ---------------------------------------------------------------- what nobody wrote

CLAIM: dict[str, Any] = {
    "epoch": 1,
    "owner": None,
    "beat": 0,
    "task": 3,
    "failures": 0,
    "dead": False,
}
NONE_OF_OURS: list[Any] = [
    {}, [], "claim", 7, None, {"deleted": True}, CLAIM | {"epoch": 0}, CLAIM | {"epoch": "1"},
    CLAIM | {"owner": 7}, CLAIM | {"beat": -1}, {"epoch": 1, "beat": 0},
]  # fmt: skip


@pytest.mark.parametrize("value", NONE_OF_OURS, ids=str)
def test_what_no_holder_writes_is_a_misfit(value: Any) -> None:
    with pytest.raises(Misfit):
        claim_of(value)


@pytest.mark.parametrize("note", ["task", "failures", "dead"])
def test_a_claim_has_all_its_notes(note: str) -> None:
    assert claim_of(CLAIM) == Claim(1, None, 0, 3, 0, False)
    for wrong in (CLAIM | {note: "x"}, {name: CLAIM[name] for name in CLAIM if name != note}):
        with pytest.raises(Misfit):
            claim_of(wrong)


def test_of_what_nobody_has_taken_there_is_no_register() -> None:
    assert Claim().value is None
    assert Claim(epoch=1).value == CLAIM | {"task": 0}


class Damaging(Worker):
    """Its first `reads` reads show `value`, whatever is there."""

    def __init__(self, store: Store, reads: int, value: Any) -> None:
        def apply(op: StoreOp) -> Outcome:
            nonlocal reads
            if isinstance(op, Get) and reads:
                reads -= 1
                return Ok(value)
            return store.apply(op)

        Driver.__init__(self, apply)
        self.claims = Claims(self.clock, REGISTER, "damaged", Pace())


@pytest.mark.parametrize("value", [value for value in NONE_OF_OURS if value is not None], ids=str)
def test_a_damaged_claim_is_read_again_and_a_broken_one_is_named(store: Store, value: Any) -> None:
    store.apply(Put(REGISTER, CLAIM))
    broken = Damaging(store, 100, value)
    with pytest.raises(StoreSilent, match=r"'claim/work' could not be read: it holds no"):
        broken.call(broken.claims.claim())
    assert held(store) == CLAIM
    damaged = Damaging(store, 1, value)
    assert damaged.call(damaged.claims.claim()) == 3
    assert damaged.claims.epoch == 2


def test_a_damaged_count_is_read_again(store: Store) -> None:
    store.apply(Put("m", 7))
    assert Damaging(store, 1, {"seven": 7}).call(raise_to("m", 9, known=3)) == 9


# ---------------------------------------------------------------- any schedule

ACTS = st.tuples(st.integers(0, 2), st.sampled_from((*FATES, "ok", "ok", "ok", "arrive", "time")))


class Factory:
    """Workers that claim, beat and release without end; whoever is silent or loses starts again.

    `claimed` are `(epoch, task, worker)` as they were claimed; every release of a done task is kept too.
    """

    def __init__(self) -> None:
        self.store = Store()
        self.workers = [Worker(self.store, f"w{number}") for number in range(3)]
        self.claimed: list[tuple[int, int, int]] = []
        self.rounds = 40
        for number, worker in enumerate(self.workers):
            worker.start(self._work(number, worker.claims))

    def _work(self, number: int, claims: Claims) -> Process[Any]:
        while self.rounds:
            self.rounds -= 1
            with suppress(StoreSilent, LeaseLost):
                yield from self._round(number, claims)

    def _round(self, number: int, claims: Claims) -> Generator[Any, Any, None]:
        task = yield from claims.claim()
        if task is None:
            return
        self.claimed.append((claims.epoch, task, number))
        yield from claims.beat()
        yield from claims.beat()
        yield from claims.release(done=number != 2)  # one of them always fails

    def run(self, acts: list[tuple[int, Any]]) -> None:
        """Play the acts, then let everybody finish."""
        for number, act in acts:
            worker = self.workers[number]
            if act == "arrive":
                if worker.late:
                    worker.arrive()
            elif act == "time" and worker.running and not worker.calls:
                worker.pass_time()
            elif worker.calls and act != "time":
                worker.carry_out(act)
        for worker in self.workers:
            while worker.late:
                worker.arrive()
            worker.finish()


@given(st.lists(ACTS, min_size=20, max_size=120))
def test_one_live_claim(acts: list[tuple[int, Any]]) -> None:
    factory = Factory()
    factory.run(acts)
    epochs = [epoch for epoch, _, _ in factory.claimed]
    assert len(set(epochs)) == len(epochs), "OneLiveClaim: an epoch was claimed twice"
    tasks = [task for _, task, _ in sorted(factory.claimed)]
    assert tasks == sorted(tasks), "a task that was done came back"
    state = held(factory.store)
    assert state["epoch"] >= max(epochs)
    assert state["dead"] == (state["failures"] >= FAILURES_MAX)
