"""Records as JSON and back, by the declared types of their fields: a file can hold nothing but data.

a dataclass or named tuple      an object with every field that its constructor takes
a list, tuple or set            a list
a dictionary                    a list of pairs
bytes                           hexadecimal digits
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

_hints = cache(get_type_hints)


def plain(value: Any) -> Any:
    """Return what stands for a value in JSON."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return [[plain(key), plain(each)] for key, each in value.items()]
    kind: Any = type(value)
    if names := _names(kind):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple | set):
        return [plain(each) for each in value]
    return value


def typed(kind: Any, value: Any) -> Any:
    """Return the value of type `kind` for which `value` stands.

    Raises `TypeError` or `ValueError` when it stands for none.
    """
    shape, of = get_origin(kind), get_args(kind)
    if names := _names(kind):
        if not isinstance(value, dict) or [*value] != names:
            raise TypeError(f"{kind.__name__} must have the fields {', '.join(names)}")
        hints = _hints(kind)
        return kind(**{name: typed(hints[name], value[name]) for name in names})
    if shape is UnionType:
        return None if value is None else typed(of[0], value)
    if shape is dict:
        return {typed(of[0], key): typed(of[1], each) for key, each in value}
    if shape in (list, tuple, set):
        return shape(typed(of[0], each) for each in value)
    if kind is bytes:
        return bytes.fromhex(value)
    if type(value) is not kind:
        raise TypeError(f"{kind} cannot be {value!r}")
    return value


@cache
def _names(kind: Any) -> list[str]:
    """The fields of a record; none: it is no record."""
    if is_dataclass(kind):
        return [each.name for each in fields(kind) if each.init]
    return [*getattr(kind, "_fields", ())]
