"""The search misses nothing: counts by formula, and the same ends with and without each reduction."""

from math import factorial

import pytest

from simulation.exploration.search import Search
from tests.simulation.exploring import Acts, Judge, Steppers

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
    everything = searched(Search(merging=False), acts)
    formula = factorial(processes * steps) // factorial(steps) ** processes
    assert everything.counts.schedules == formula
    assert len(everything.states) == (steps + 1) ** processes
    merged = searched(Search(), acts)
    assert merged.counts.schedules <= processes
    assert len(merged.states) == (steps + 1) ** processes
    assert merged.counts.events == processes * steps * (steps + 1) ** (processes - 1)


def test_merged_states_reach_the_same_ends() -> None:
    everything, merged = searched(Search(merging=False), RACE), searched(Search(), RACE)
    assert merged.ends == everything.ends
    assert len(everything.ends) > 1
    assert merged.states == everything.states
    assert merged.counts.events < everything.counts.events


def test_a_failure_is_found_whatever_is_left_out() -> None:
    for merging in (True, False):
        search = searched(Search(merging), RACE, lambda values: values["register"] != 1)
        assert search.failed is not None
        assert search.failed.name == "LostUpdate"
        again = Steppers(RACE)
        for event in search.failed.schedule:
            again.step(event)
        assert again.values == {"register": 1}


def test_a_search_goes_on_where_it_was_stopped() -> None:
    """After each single event it is stopped, and goes on."""
    whole = searched(Search(), RACE)
    search, fractions = Search(), [0.0]
    while not search.done:
        once = iter([False])
        search.run(lambda: Steppers(RACE), lambda once=once: next(once, True))  # type: ignore[misc]
        fractions.append(round(search.fraction, 9))
    assert (search.ends, search.counts.events) == (whole.ends, whole.counts.events)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_bound_on_delays_cuts_and_says_so() -> None:
    everything = searched(Search(merging=False), RACE)
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
