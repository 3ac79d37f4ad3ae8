"""What the register of a group's members holds (`leaderless.library.members`)."""

from typing import Any

import orjson
import pytest

from leaderless.core.coordination import Misfit
from leaderless.library.members import Member, Members, Membership, Roster, roster_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import all_of

ROSTER: dict[str, Any] = {"version": 3, "members": {"a": [7, None], "b": [0, 2]}}


def test_a_roster_comes_back_as_it_was() -> None:
    assert roster_of(ROSTER) == Roster(3, {"a": Member(7), "b": Member(0, 2)})
    assert roster_of(ROSTER).value == ROSTER


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], {}, {"version": "3", "members": {}}, {"version": -1, "members": {}},
        {"version": 3, "members": []}, {"version": 3, "members": {"a": [1]}},
        {"version": 3, "members": {"a": [1, None, 2]}}, {"version": 3, "members": {"a": ["1", 2]}},
        {"version": 3, "members": {"a": [1, "2"]}}, {"version": 3, "members": {"a": 1}},
    ],
)  # fmt: skip
def test_what_no_member_writes_is_a_misfit(wrong: Any) -> None:
    with pytest.raises(Misfit):
        roster_of(wrong)


@pytest.mark.anyio
@pytest.mark.lawless
async def test_a_beat_keeps_the_others_and_leaves_out_what_it_does_not_know() -> None:
    """As before it had types: a field of another release beside the members is not written again."""
    store = MemoryStore()
    me = Members(store, Membership("g", ("k",)), "me")
    await me.beat()
    [register] = [listed.key async for listed in all_of(store)]
    await store.write(register, orjson.dumps(ROSTER | {"more": 1}))
    await me.beat()
    found = await store.read(register)
    assert found is not None
    members = ROSTER["members"] | {"me": [2, None]}
    assert orjson.loads(found.value) == {"version": 4, "members": members}
