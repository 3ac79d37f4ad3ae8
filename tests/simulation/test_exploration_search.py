"""The search misses nothing: counts by formula, and the same ends with and without each reduction."""

from itertools import product
from math import factorial

import orjson
import pytest

from simulation.exploration.events import Event, independent
from simulation.exploration.plain import plain, typed
from simulation.exploration.search import Search
from tests.simulation.exploring import Acts, Judge, Steppers

BOTH = [*product([True, False], repeat=2)]
RACE = dict.fromkeys("abc", ("get", "own", "add"))


def searched(search: Search, acts: Acts, ok: Judge = lambda _: True) -> Search:
    search.run(lambda: Steppers(acts, ok), lambda: False)
    assert search.done
    return search


@pytest.mark.parametrize(("processes", "steps"), [(1, 4), (2, 1), (2, 3), (3, 2), (4, 2), (2, 5)])
def test_independent_processes_have_as_many_schedules_as_the_formula_says(
    processes: int, steps: int
) -> None:
    acts = {str(number): ("own",) * steps for number in range(processes)}
    everything = searched(Search(sleeping=False, merging=False), acts)
    formula = factorial(processes * steps) // factorial(steps) ** processes
    assert everything.counts.schedules == formula
    assert len(everything.states) == (steps + 1) ** processes
    assert searched(Search(merging=False), acts).counts.schedules == 1
    merged = searched(Search(sleeping=False), acts)
    assert len(merged.states) == (steps + 1) ** processes
    assert merged.counts.events == processes * steps * (steps + 1) ** (processes - 1)


@pytest.mark.parametrize(("sleeping", "merging"), BOTH)
def test_every_reduction_reaches_the_same_ends(sleeping: bool, merging: bool) -> None:
    everything = searched(Search(sleeping=False, merging=False), RACE)
    reduced = searched(Search(sleeping=sleeping, merging=merging), RACE)
    assert reduced.ends == everything.ends
    assert len(everything.ends) > 1
    assert set(reduced.states) <= set(everything.states)


def test_sleep_sets_play_one_schedule_of_each_class() -> None:
    """Two increments: which get and add come first decides; the own steps are free."""
    acts = dict.fromkeys("ab", ("get", "own", "add"))
    asleep = searched(Search(merging=False), acts)
    # Orders of (get, add) of a and b, up to the order of the two gets: one after the other (2), or
    # both gets first, and then the adds in either order (2).
    assert asleep.counts.schedules == 4


def test_a_failure_is_found_whatever_is_left_out() -> None:
    for sleeping, merging in BOTH:
        search = searched(Search(sleeping, merging), RACE, lambda values: values["register"] != 1)
        assert search.failed is not None
        assert search.failed.name == "LostUpdate"
        again = Steppers(RACE)
        for event in search.failed.schedule:
            again.step(event)
        assert again.values == {"register": 1}


def test_a_search_goes_on_where_it_was_stopped() -> None:
    """After each single event it is stopped, kept as bytes, and taken up again."""
    whole = searched(Search(), RACE)
    search, fractions = Search(), [0.0]
    while not search.done:
        once = iter([False])
        search.run(lambda: Steppers(RACE), lambda once=once: next(once, True))  # type: ignore[misc]
        search = typed(Search, orjson.loads(orjson.dumps(plain(search))))
        search.require_possible(lambda: Steppers(RACE))
        fractions.append(round(search.fraction, 9))
    assert (search.ends, search.counts.events) == (whole.ends, whole.counts.events)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_bound_on_delays_cuts_and_says_so() -> None:
    everything = searched(Search(sleeping=False, merging=False), RACE)
    counts = []
    for delays in range(9):
        search = searched(Search(merging=False, delays=delays), RACE)
        counts.append(search.counts.schedules)
        assert search.ends <= everything.ends
        assert bool(search.counts.delayed) == (
            search.counts.schedules < everything.counts.schedules
        )
    assert counts[0] == 1
    assert counts == sorted(counts)
    assert searched(Search(merging=False, delays=18), RACE).counts.schedules == (
        everything.counts.schedules
    )


def test_a_digest_that_leaves_something_out_would_be_noticed() -> None:
    """The test of the test: with a digest that forgets what was read, ends are missing."""

    class Forgetful(Steppers):
        def digest(self) -> bytes:
            return repr((self._at, self.values)).encode()

    search = Search()
    search.run(lambda: Forgetful(RACE), lambda: False)
    assert len(search.ends) < len(searched(Search(), RACE).ends)


def test_what_commutes() -> None:
    assert independent({"n0": "writes"}, {"n1": "writes", "register": "reads"})
    assert independent({"register": "reads"}, {"register": "reads"})
    assert independent({"answers": "adds"}, {"answers": "adds"})
    assert not independent({"answers": "adds"}, {"answers": "reads", "n1": "writes"})
    assert not independent({"register": "writes"}, {"register": "writes"})
    assert str(Event("end")) == "end"
