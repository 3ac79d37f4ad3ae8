"""The store port: what is asked of lin-kv, and what its answers say."""

from typing import Any

import pytest

from leaderless.core.messages import Cas, Get, Mismatch, Missing, Ok, Put, StoreCall, Unknown
from leaderless.store.lin_kv import body_of, outcome_of


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (Get("a"), {"type": "read", "key": "a"}),
        (Put("a", 1), {"type": "write", "key": "a", "value": 1}),
        (Cas("a", 1, 2), {"type": "cas", "key": "a", "from": 1, "to": 2}),
        (
            Cas("a", 1, 2, create=True),
            {"type": "cas", "key": "a", "from": 1, "to": 2, "create_if_not_exists": True},
        ),
    ],
)
def test_body_of(op: Any, body: dict[str, Any]) -> None:
    assert body_of(StoreCall(7, op)) == {**body, "msg_id": 7}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"type": "read_ok", "value": [1]}, Ok([1])),
        ({"type": "write_ok"}, Ok()),
        ({"type": "cas_ok"}, Ok()),
        ({"type": "error", "code": 20}, Missing()),
        ({"type": "error", "code": 22}, Mismatch()),
        *(({"type": "error", "code": code}, Unknown()) for code in (0, 1, 11, 13, 14, 21, 1000)),
        *(({"type": "error", "code": code}, Unknown(spent=1.0)) for code in (10, 12)),
        ({"type": "error"}, Unknown()),
        ({"type": "error", "code": "22"}, Unknown()),
        ({"type": "read_ok"}, Unknown()),
        ({"type": "nonsense"}, Unknown()),
    ],
)
def test_outcome_of(body: dict[str, Any], outcome: Any) -> None:
    assert repr(outcome_of(body)) == repr(outcome)  # to Python, `Missing()` equals `Mismatch()`
