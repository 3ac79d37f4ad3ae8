"""Durable commits: nodes share their registers, no commit is lost, and programs take them over."""

import re
from pathlib import Path
from typing import Any

import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.core.coordination import Misfit
from leaderless.core.headlog.commits import Committed, commit_registers, committed_of
from leaderless.core.messages import Batch, CommitOffsets, CommitOffsetsOk, HandOver
from leaderless.core.shape import Shape
from leaderless.store.registers import canonical

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("nodes", "registers"), [(1, 1), (2, 2), (4, 2), (5, 3), (16, 4), (25, 5)])
def test_a_log_has_as_many_registers_as_the_root_of_its_nodes(nodes: int, registers: int) -> None:
    assert commit_registers(Shape().for_nodes(nodes)) == [
        f"committed/{number}" for number in range(registers)
    ]


@pytest.mark.parametrize(
    "value", [{"k": 4}, {"format": 2}, None, {"format": 4, "slot": -1, "offsets": {}}]
)
def test_registers_of_another_format_are_refused(value: object) -> None:
    with pytest.raises(Misfit):
        committed_of(value)
    written = Committed(3, {"k": 4})
    assert committed_of(written.value) == written


# ---------------------------------------------------------------- two homes


PAGE = Path(__file__).parents[2] / "docs" / "log" / "groups.md"


@pytest.fixture
def lines() -> dict[str, Any]:
    """What the blocks of the page define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    return names


async def committed_through_nodes(log: Log) -> None:
    """Offsets as nodes leave them: in two registers, in the log, and the same key in several places."""
    answer = await log.host.ask(lambda request: CommitOffsets(request, {"a": 4, "b": 1}))
    assert isinstance(answer, CommitOffsetsOk)
    await log._store.write("committed/1", canonical(Committed(0, {"a": 2, "c": 7}).value))
    batch = Batch("node", 1, 0, {}, {"b": 3, "c": 5, "d": 0}, 1)
    hand_over: Any = HandOver
    await log.host.ask(lambda request: hand_over(request, log._strategy.view.slot, batch))


async def test_what_clients_of_nodes_committed_is_read_from_registers_and_log(
    url: str, log: Log
) -> None:
    assert await log.committed_by_nodes() == {}
    await committed_through_nodes(log)
    expected = {"a": 4, "b": 3, "c": 7, "d": 0}
    assert await log.committed_by_nodes() == expected
    async with open_log(url) as other:
        assert await other.committed_by_nodes() == expected


async def test_offsets_move_from_nodes_to_a_group(
    url: str, log: Log, lines: dict[str, Any]
) -> None:
    for key in "abcd":
        await log.append_many(key, [*range(9)])
    await committed_through_nodes(log)
    expected = await log.committed_by_nodes()
    await log.commit("g", {"a": 6})
    for _ in range(2):
        assert await lines["move"](url, "g") == expected | {"a": 6}
    async with log.consumer("g", ["b"]) as consumer:
        assert (await anext(consumer)).offset == expected["b"] + 1
