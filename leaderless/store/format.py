"""The object `format` of a log in a store: made before all else, it says the shape that the log has.

It holds `{format: 5, made_by, shape: {...}}`; see `leaderless.core.shape`.
"""

from contextlib import suppress
from math import inf
from reprlib import repr as brief
from typing import Any

import orjson

from leaderless.core.coordination import Json, Misfit
from leaderless.core.shape import FORMATS, LOG_FORMAT, NAMES, Shape
from leaderless.errors import Broken, NotInitialised, OtherFormat, Unreachable
from leaderless.store.calls import Damaged, Held, patiently, read_once
from leaderless.store.names import FORMAT
from leaderless.store.port import Conflict, OutcomeUnknown, Refused, Store


def format_of(shape: Shape, made_by: str) -> bytes:
    """The object of a log of this shape; `made_by`: the program that gave it the shape."""
    return orjson.dumps({"format": LOG_FORMAT, "made_by": made_by, "shape": shape.value})


async def shape_in(store: Store) -> Shape:
    """The shape of the log in a store, which is asked once, and again only for an answer that makes no sense.

    Raises `NotInitialised` without `format`, `OtherFormat` for one that this program does not know, `Definite`
    when the store refuses, `Unreachable` when it is silent.
    """

    async def once() -> Held[Shape | str] | None:
        try:
            return await read_once(store, FORMAT, format_in)
        except (Damaged, Refused):
            raise
        except OutcomeUnknown as unknown:
            raise Unreachable(str(unknown)) from unknown

    try:
        found = await patiently(once, inf, reads=True)  # its callers have the patience
    except Broken as broken:
        raise OtherFormat(f"{store.url} holds no log that this program knows: {broken}") from broken
    if found is None:
        raise NotInitialised(f"there is no log at {store.url}; make it with `leaderless init`")
    if isinstance(found.value, Shape):
        return found.value
    raise OtherFormat(f"{store.url} has format {found.value}")


async def upgrade(store: Store) -> tuple[int, int]:
    """Give the log in a store the format of this program; returns the number before, and the one now.

    Only then its records get times and headers. An older program stops at the first of them. May be repeated.
    Raises as `shape_in`, and `Indefinite`.
    """
    before = (await shape_in(store)).form

    async def once() -> None:
        found = await store.read(FORMAT)
        value = orjson.loads(found.value) if found else {}
        if found and value["format"] < LOG_FORMAT:
            text = orjson.dumps(value | {"format": LOG_FORMAT})
            with suppress(Conflict):  # another process does the same
                await store.compare_and_set(FORMAT, text, found.version)

    await patiently(once)
    return before, (await shape_in(store)).form


def format_in(value: Json) -> Shape | str:
    """The shape in the object; or what is unknown of its format: the number, and how to get the records out.

    Raises `Misfit`.
    """
    match value:
        case {"format": int(number), **others} if number not in FORMATS:
            return (
                f"{number}, and this version knows {LOG_FORMAT}: read its records with the program that made "
                f"it ({brief(others.get('made_by'))}), and append them to a new log"
            )
        case {"format": int(number), "shape": dict(shape)}:
            try:
                # The last one is left out where there is no compression.
                values: dict[str, Any] = {name: shape[name] for name in {*NAMES[:-1], *shape}}
                return Shape(**values, form=number)
            except (TypeError, ValueError, KeyError) as error:
                return f"{number} with an unknown shape ({error})"
    raise Misfit(f"no format: {brief(value)}")
