"""Values that are made for every message: fields in slots, compared by their contents."""

import copy
import pickle
from collections.abc import Callable
from typing import get_args

import pytest

from leaderless.core.messages import Cas, Get, Ok, Reply, Request, Send, SendOk, StoreCall
from leaderless.core.pace import Pace
from leaderless.core.process import Trap
from leaderless.core.scheduler import Scheduler
from leaderless.core.timeouts import StoreTimeouts

REQUEST = Request("c1", 7)


def test_values_are_equal_by_class_and_fields() -> None:
    assert Send(REQUEST, "k", [1]) == Send(REQUEST, "k", [1], 0)
    assert Send(REQUEST, "k", [1]) != Send(REQUEST, "k", [2])
    assert len({SendOk(1), Ok(1)}) == 2
    assert hash(Get("a")) == hash(Get("a"))
    assert len({Get("a"), Get("a"), Get("b")}) == 2


def test_defaults_and_names() -> None:
    assert Ok().value is None
    assert Cas("a", None, 1).create is False
    assert StoreCall(call=3, op=Get(key="a")) == StoreCall(3, Get("a"))
    with pytest.raises(TypeError):
        SendOk()  # type: ignore[call-arg]


def test_a_match_finds_the_fields_in_their_order() -> None:
    match Reply(REQUEST, SendOk(4)):
        case Reply(Request(src, _), SendOk(offset)):
            assert (src, offset) == ("c1", 4)
        case other:
            pytest.fail(f"no match: {other}")


def test_a_value_shows_its_fields_and_has_no_others() -> None:
    shown = f"Send(request={REQUEST!r}, key='k', msg=1, size=8, epoch=None)"
    assert repr(Send(REQUEST, "k", 1, 8)) == shown
    with pytest.raises(AttributeError):
        Get("a").other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_equal(again: Callable[[StoreCall], StoreCall]) -> None:
    value = StoreCall(3, Cas("a", None, {"b": [1]}, True))
    assert again(value) == value


def test_the_scheduler_knows_each_trap() -> None:
    assert Scheduler(StoreTimeouts(Pace()))._handlers.keys() == {*get_args(Trap)}
