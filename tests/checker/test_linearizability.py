"""The search for a linearization: small histories by hand, all small ones against brute force,
long ones."""

import random
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.lin_kv.linearizability import Blocked, Call, search


def calls(*spans: tuple[Any, ...]) -> list[Call]:
    """`(f, value, invoked, returned)` per call."""
    return [Call(number, *span) for number, span in enumerate(spans)]


W1, R0, R1 = ("write", 1, 0, 9), ("read", None, 1, 2), ("read", 1, 1, 2)
LOST, ZERO = ("write", 1, 0, None), ("write", 0, 0, 1)
AGAIN = (R1, ("write", 2, 3, 4), ("read", 1, 5, 6))


@pytest.mark.parametrize(
    ("spans", "linearizable"),
    [
        ([], True),
        ([("write", 1, 0, 1), ("read", 1, 2, 3)], True),
        # A read during a write may see either value, and no later one goes back in time.
        ([W1, R0], True),
        ([W1, R1], True),
        ([W1, R0, ("read", 1, 3, 4)], True),
        ([W1, R1, ("read", None, 3, 4)], False),
        # Of two equal compare-and-sets one can succeed.
        ([ZERO, ("cas", (0, 1), 2, 5)], True),
        ([ZERO, ("cas", (0, 1), 2, 5), ("cas", (0, 1), 3, 4)], False),
        # A lost write may take effect later or never, but not twice, nor before it was asked for.
        ([LOST, R0], True),
        ([LOST, R0, ("read", 1, 3, 4)], True),
        ([LOST, *AGAIN], False),
        ([LOST, ("write", 1, 0.5, None), *AGAIN], True),
        ([("read", 1, 0, 1), ("write", 1, 2, None)], False),
    ],
)
def test_small_histories(spans: list[tuple[Any, ...]], linearizable: bool) -> None:
    assert search(calls(*spans)).linearizable is linearizable


def test_a_stale_read_is_rejected_and_the_witness_is_the_shortest_prefix() -> None:
    write, read = history = calls(("write", 1, 0, 1), ("read", None, 2, 3))
    assert search(history).blocked == Blocked(read, {1: write}, ())
    history = calls(("write", 1, 0, 1), ("read", 2, 2, 3), ("write", 3, 4, 5), ("read", 4, 6, 7))
    assert (blocked := search(history).blocked)
    assert blocked.call == history[1]


def test_gives_up_at_the_limit() -> None:
    history = calls(*(("write", i, i, 100 + i) for i in range(12)), ("read", -1, 12, 200))
    outcome = search(history, limit=1000)
    assert outcome.linearizable is None
    assert outcome.explored <= 1000 + len(history)


def brute_force(history: list[Call]) -> bool:
    """Try every order of every choice of lost calls."""
    certain = [call for call in history if call.returned is not None]
    lost = [call for call in history if call.returned is None]
    return any(
        legal(order)
        for chosen in range(1 << len(lost))
        for order in permutations(
            certain + [call for i, call in enumerate(lost) if chosen >> i & 1]
        )
    )


def legal(order: Any) -> bool:
    held = None
    latest = -1
    for call in order:
        latest = max(latest, call.invoked)
        if call.returned is not None and call.returned < latest:
            return False
        if call.f == "write":
            held = call.value
        elif held != (call.value[0] if call.f == "cas" else call.value):
            return False
        elif call.f == "cas":
            held = call.value[1]
    return True


values = st.integers(0, 2)


@st.composite
def histories(draw: Callable[..., Any]) -> list[Call]:
    size = draw(st.integers(1, 6))
    positions = draw(st.permutations(range(2 * size)))
    history = []
    for number in range(size):
        first, second = sorted(positions[2 * number : 2 * number + 2])
        f = draw(st.sampled_from(["read", "write", "cas"]))
        value = {
            "read": st.one_of(st.none(), values),
            "write": values,
            "cas": st.tuples(values, values),
        }[f]
        returned = None if f != "read" and draw(st.integers(0, 3)) == 0 else second
        history.append(Call(number, f, draw(value), first, returned))
    return history


@given(histories())
def test_agrees_with_brute_force(history: list[Call]) -> None:
    assert search(history).linearizable is brute_force(history)


def run_of(seed: int, size: int, at_once: int, lost: float = 0.0) -> list[Call]:
    """A linearizable history: call `n` takes effect at time 1000 `n`, within an interval around it."""
    rng = random.Random(seed)
    held: int | None = None
    history: list[Call] = []
    for at in range(size):
        f, new = rng.choice(["read", "read", "write", "cas"]), rng.randrange(5)
        value = {"read": held, "write": new, "cas": (held, new)}[f]
        held = held if f == "read" else new
        returned = 1000 * at + rng.randrange(500 * at_once)
        is_lost = f != "read" and rng.random() < lost
        began = 1000 * at - rng.randrange(500 * at_once)
        history.append(Call(at, f, value, began, None if is_lost else returned))
    return history


@pytest.mark.parametrize("lost", [0.0, 0.01])
def test_ten_thousand_calls_take_effort_in_proportion(lost: float) -> None:
    history = run_of(seed=1 + bool(lost), size=10_000, at_once=10, lost=lost)
    outcome = search(history)
    assert outcome.linearizable is True
    assert lost or outcome.explored < 20 * len(history)


def test_one_wrong_read_among_thousands_is_found() -> None:
    history = run_of(seed=3, size=5000, at_once=8)
    wrong = max(i for i, call in enumerate(history[:4000]) if call.f == "read")
    history[wrong] = history[wrong]._replace(value="never written")
    assert (blocked := search(history).blocked)
    assert blocked.call == history[wrong]
