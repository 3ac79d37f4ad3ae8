"""The object `format` of a log: which version of the program made it, and how it keeps its runs.

    format    {format: 1 or 2, made_by}

Runs of a log of format 1 are JSON registers, those of format 2 are Parquet files (`leaderless.table`). Which
of them is chosen when the log is made, and holds for all its life.
"""

from typing import Any, Literal

import orjson

from leaderless.errors import Definite, Indefinite, NotInitialised, OtherFormat
from leaderless.store.names import FORMAT
from leaderless.store.port import OutcomeUnknown, Refused, Store

Runs = Literal["json", "parquet"]
VERSIONS: dict[Runs, int] = {"json": 1, "parquet": 2}  # one that does not know it refuses the log


async def runs_of(store: Store) -> Runs:
    """How the log in a store keeps its runs.

    Raises `NotInitialised` without `format`, `OtherFormat` for one that this program does not know, `Definite`
    when the store refuses, `Indefinite` when it is silent.
    """
    try:
        found = await store.read(FORMAT)
    except Refused as refused:
        raise Definite(str(refused)) from refused
    except OutcomeUnknown as unknown:
        raise Indefinite(str(unknown)) from unknown
    if found is None:
        raise NotInitialised(f"there is no log at {store.url}; make it with `leaderless init`")
    try:
        version: Any = orjson.loads(found.value)["format"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        version = None
    for runs, known in VERSIONS.items():
        if version == known:
            return runs
    raise OtherFormat(
        f"{store.url} has format {version}, and this version of leaderless knows "
        f"{max(VERSIONS.values())} and older: use a newer one"
    )
