"""The programs of docs/table.md, run on a small log: DuckDB and pandas see each record once."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from leaderless.store.sqlite import SqliteStore
from tests.tables import Model, append, compact, small_log

PAGE = Path(__file__).parents[2] / "docs" / "table.md"


async def make(file: Path) -> Model:
    """A log with merged files, runs, segments and a head."""
    model: Model = {}
    store = SqliteStore(file)
    async with small_log(store) as log:
        for number in range(30):
            await append(log, model, "eu" if number % 3 else "us", {"amount": number})
        await compact(log)
        await append(log, model, "eu", {"amount": 1000})
    await store.aclose()
    return model


def test_the_programs_of_the_page_count_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = anyio.run(make, tmp_path / "orders.db")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(program, names)
    records = {key: len(values) for key, values in model.items()}
    assert names["everything"] == (sum(records.values()),)
    in_files = {key: records for key, records, _ in names["orders"].fetchall()}
    in_tail = {key: sum(row.key == key for row in names["found"].tail) for key in records}
    assert {key: in_files[key] + in_tail[key] for key in records} == records
    assert len(names["frame"]) == sum(in_files.values())
    assert {*zip(names["newest"]["key"], names["newest"]["offset"], strict=True)} == {
        (key, count - 1) for key, count in in_files.items()
    }
    amounts = {key: amount for key, _, amount in names["orders"].fetchall()}
    wanted = {
        key: sum(each["amount"] for each in values[: in_files[key]] if isinstance(each, dict))  # type: ignore[misc]
        for key, values in model.items()
    }
    assert amounts == wanted
