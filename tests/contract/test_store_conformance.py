"""One contract for every implementation of the coordination store, and for the recipes on top of it.

Each implementation is a function from a store operation to its outcome: the node's port on the bench's
service, on the store of the simulator, and on `tests.fakes.LinKv`, which is written a second time on purpose.
Bodies cross as JSON text, as they do on a wire.
Outcomes and values are compared as they print: to Python, `Missing()` equals `Mismatch()`, and 1 equals true.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.services import Linearizable, respond_kv
from leaderless.core.coordination import (
    TOMBSTONE,
    StoreSilent,
    create,
    delete,
    raise_to,
    read_register,
    replace,
)
from leaderless.core.messages import (
    Cas,
    Get,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Put,
    StoreOp,
)
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from tests.driver import FATES, Apply, Driver
from tests.fakes import LinKv
from tests.ported import Store, over_the_wire


def bench_service() -> Apply:
    service = Linearizable(respond_kv)
    return over_the_wire(lambda body: service.handle("n0", body))


STORES: dict[str, Callable[[], Apply]] = {
    "bench": bench_service,
    "simulation": lambda: Store().apply,
    "fake": lambda: over_the_wire(LinKv().handle),
}


@pytest.fixture(params=[*STORES.values()], ids=[*STORES])
def apply(request: pytest.FixtureRequest) -> Apply:
    store: Apply = request.param()
    return store


# ---------------------------------------------------------------- operations

# Every kind of JSON value, with the neighbours that Python takes for equal.
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.0, 1.0, 2**53, "", "1", "ü\n\0", [], [[]], {}, {"a": None},
    {"a": [1, {"b": True}]}, {"a": [1, {"b": 1}]}, [1], [1.0], [True], {"deleted": True},
]  # fmt: skip


def agree(outcome: Any, expected: Any) -> bool:
    return repr(outcome) == repr(expected)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_compared_by_value(apply: Apply, value: Any) -> None:
    for other in VALUES:
        apply(Put("a", value))
        same = repr(value) == repr(other)
        assert agree(apply(Cas("a", other, "new")), Ok() if same else Mismatch())
        assert agree(apply(Get("a")), Ok("new" if same else value))


# Operations, and what comes of each. Null is a value, not the absence of one.
CASES: dict[str, list[tuple[StoreOp, Outcome]]] = {
    "the order of names is no difference": [
        (Put("a", {"x": 1, "y": {"p": 2, "q": 3}}), Ok()),
        (Cas("a", {"y": {"q": 3, "p": 2}, "x": 1}, "new"), Ok()),
    ],
    "missing": [(Get("a"), Missing()), (Cas("a", None, 1), Missing()), (Get("a"), Missing())],
    "made once": [
        (Cas("a", None, 1, create=True), Ok()),
        (Cas("a", None, 2, create=True), Mismatch()),
        (Get("a"), Ok(1)),
    ],
    "to create compares what is there": [
        (Put("a", 1), Ok()),
        (Cas("a", 1, 2, create=True), Ok()),
        (Get("a"), Ok(2)),
    ],
    "registers are apart": [
        *((Put(key, value), Ok()) for value, key in enumerate(("a", "A", "a/1"))),
        *((Get(key), Ok(value)) for value, key in enumerate(("a", "A", "a/1"))),
        (Get(""), Missing()),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_what_comes_of_operations(apply: Apply, case: str) -> None:
    for op, outcome in CASES[case]:
        assert agree(apply(op), outcome)


def test_nobody_shares_a_value_with_a_register(apply: Apply) -> None:
    value: Any = {"list": [1]}
    apply(Put("a", value))
    value["list"].append(2)
    answer: Any = apply(Get("a"))
    answer.value["list"].append(3)
    assert agree(apply(Get("a")), Ok({"list": [1]}))


OPS = st.one_of(
    st.sampled_from("ab").map(Get),
    st.builds(Put, st.sampled_from("ab"), st.sampled_from(VALUES)),
    st.builds(Cas, *map(st.sampled_from, ("ab", VALUES, VALUES)), st.booleans()),
)


@given(st.lists(OPS))
def test_all_stores_are_one(ops: list[StoreOp]) -> None:
    stores = [make() for make in STORES.values()]
    for op in ops:
        first, *others = (store(op) for store in stores)
        assert all(agree(other, first) for other in others), op


# ---------------------------------------------------------------- recipes, undisturbed


def count_up(register: str, by: str) -> Process[int]:
    """Count one up by `replace`, and return the count; `by` makes what is written unique."""
    while True:
        old: Any = yield from read_register(register)
        count = old["count"] + 1 if old else 1
        if (yield from replace(register, old, {"count": count, "by": by})):
            return count


def test_recipes(apply: Apply) -> None:
    call = Driver(apply).call
    assert call(read_register("a")) is None
    call(create("a", 1))
    call(create("a", 2))
    assert call(read_register("a")) == 1
    assert call(replace("a", 1, 3)) is True
    assert call(replace("a", 1, 4)) is False
    assert call(replace("b", None, 1)) is True
    assert [call(count_up("n", str(by))) for by in range(3)] == [1, 2, 3]
    call(raise_to("top", 5))
    call(raise_to("top", 3))
    assert call(read_register("top")) == 5
    call(delete("a"))
    assert call(read_register("a")) == TOMBSTONE
    call(create("a", 1))
    assert call(read_register("a")) == TOMBSTONE  # whoever was late does not bring it back


@pytest.mark.parametrize(
    "recipe",
    [
        lambda: read_register("a"),
        lambda: create("a", 1),
        lambda: delete("a"),
        lambda: replace("a", None, 1),
        lambda: raise_to("a", 1),
    ],
)
def test_a_silent_store_is_told_not_waited_for(recipe: Callable[[], Process[Any]]) -> None:
    driver = Driver(Store().apply)
    driver.start(recipe())
    asked = 0
    while driver.running:
        asked += 1
        driver.carry_out("call lost")
    assert isinstance(driver.results[0], StoreSilent)
    assert Pace().store_attempts <= asked <= Pace().store_attempts + 1


# ---------------------------------------------------------------- recipes under lost and late answers

WORKERS = 3
SCHEDULES = st.lists(
    st.tuples(st.integers(0, WORKERS - 1), st.sampled_from((*FATES, "ok", "ok", "arrive"))),
    max_size=60,
)


class Race:
    """Workers that run recipes on one store, call by call as a schedule says.

    `changes` are the values that a register had, one after the other.
    """

    def __init__(self) -> None:
        self.changes: list[Any] = []
        store = Store(lambda _register, _old, new: self.changes.append(new))
        self.workers = [Driver(store.apply) for _ in range(WORKERS)]

    def run(self, schedule: list[tuple[int, Any]]) -> None:
        """Play the schedule, then let everything that is late arrive, and everybody finish."""
        for number, fate in schedule:
            worker = self.workers[number]
            if fate == "arrive" and worker.late:
                worker.arrive()
            elif fate != "arrive" and worker.calls:
                worker.carry_out(fate, which=number)
        for worker in self.workers:
            worker.finish()
            while worker.late:
                worker.arrive()

    def results(self) -> Iterator[Any]:
        """What recipes returned; one that met too much silence returned nothing."""
        for worker in self.workers:
            yield from (one for one in worker.results if not isinstance(one, StoreSilent))


@given(SCHEDULES)
def test_no_number_is_given_twice(schedule: list[tuple[int, Any]]) -> None:
    race = Race()
    for number, worker in enumerate(race.workers):
        for place in range(3):  # side by side in one worker too
            worker.start(count_up("n", f"{number}.{place}"))
    race.run(schedule)
    numbers = [one for one in race.results() if one is not None]
    assert not any(isinstance(one, Exception) for one in numbers)
    assert len(set(numbers)) == len(numbers)
    assert [change["count"] for change in race.changes] == list(range(1, len(race.changes) + 1))


@given(SCHEDULES)
def test_create_never_overwrites(schedule: list[tuple[int, Any]]) -> None:
    race = Race()
    for number, worker in enumerate(race.workers):
        worker.start(create("a", number))
    race.run(schedule)
    assert len(race.changes) == 1


@given(SCHEDULES, st.lists(st.integers(1, 5), min_size=WORKERS, max_size=WORKERS))
def test_raise_to_never_goes_back(schedule: list[tuple[int, Any]], targets: list[int]) -> None:
    race = Race()
    for target, worker in zip(targets, race.workers, strict=True):
        worker.start(raise_to("a", target))
    race.run(schedule)
    assert race.changes == sorted(race.changes)
    done = [
        target for target, one in zip(targets, race.workers, strict=True) if None in one.results
    ]
    assert race.changes[-1] >= max(done, default=0) if race.changes else not done


@given(SCHEDULES)
def test_a_replacement_that_stands_is_recognised(schedule: list[tuple[int, Any]]) -> None:
    race = Race()
    for number, worker in enumerate(race.workers):
        worker.start(replace("a", None, f"by {number}"))
    race.run(schedule)
    told = [number for number, one in enumerate(race.workers) if one.results == [True]]
    assert len(race.changes) == 1
    assert [f"by {number}" for number in told] in ([], race.changes)


@given(SCHEDULES)
def test_a_tombstone_stands(schedule: list[tuple[int, Any]]) -> None:
    race = Race()
    race.workers[0].call(create("a", "value"))
    race.workers[0].results.clear()
    race.workers[0].start(delete("a"))
    for worker in race.workers[1:]:
        worker.start(create("a", "again"))
    race.run(schedule)
    assert race.changes in (["value"], ["value", TOMBSTONE])
    assert TOMBSTONE in race.changes or list(race.workers[0].results) != [None]
