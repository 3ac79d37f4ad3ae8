"""Decoders of records, made from their types: what JSON has is checked once, at the edge where it comes in.

    {base: 7, entries: [[...], ...]}  -- record(Segment) -->  Segment(7, [Entry(...), ...])

An integer is a number from 0 up, and a named tuple inside a record a list with as many places; `KNOWN` has what
is decoded in another way. Whatever is not of its kind raises `Misfit`: a list that is longer or shorter, `true`
or `1.0` for a number. Names that a record does not have are passed over.

What a message and its key may be, writers and readers ask here (`kept_text`, `require_keys`). An integer beyond
64 bits shows in the text alone (`leaderless.wire.codec.json_in`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from reprlib import repr as brief
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import orjson

from leaderless.core.coordination import Json, Misfit, count_of

T = TypeVar("T")
Decoder = Callable[[Any], T]
KEY_BYTES_MAX = 1024  # of UTF-8
DEPTH_MAX = 200  # of lists and objects in a message, one in the other
_WRITTEN_DEPTH = 254  # orjson writes no deeper value; it reads deeper ones


def kept_text(value: object, above: int = 0, option: int | None = None) -> bytes:
    """The text of a value that has a message `above` levels down; 0: it is one.

    Raises `TypeError` for what is no JSON, and for a message of more than `DEPTH_MAX` levels.
    """
    spare = _WRITTEN_DEPTH - DEPTH_MAX - above
    for _ in range(spare):
        value = [value]
    try:
        return orjson.dumps(value, option=option)[spare:-spare]
    except orjson.JSONEncodeError as error:
        if "Recursion" in str(error):
            raise TypeError(f"a message of more than {DEPTH_MAX} levels") from None
        raise


def bounded(decode: Decoder[T], above: int) -> Decoder[T]:
    """The same decoder for values whose messages, `above` levels down, can be written again."""

    def checked(value: Any) -> T:
        decoded = decode(value)
        try:
            kept_text(value, above)
        except TypeError as error:
            raise Misfit(str(error)) from None
        return decoded

    return checked


def require_keys(keys: Iterable[str]) -> None:
    """Raise `Misfit` for a key that is too long, or no text that UTF-8 can write."""
    for key in keys:
        try:
            size = len(key) if key.isascii() else len(key.encode())
        except UnicodeEncodeError:
            raise Misfit(f"a key that UTF-8 cannot write: {brief(key)}") from None
        if size > KEY_BYTES_MAX:
            token = ", one of them for its token" * key.startswith("\0")
            raise Misfit(f"a key of {size} bytes{token}, of at most {KEY_BYTES_MAX}")


def exactly(kind: type[T], value: Any) -> T:
    """The value, which must be of this very kind. Raises `Misfit`."""
    if type(value) is kind:
        return value
    raise Misfit(f"no {kind.__name__}: {brief(value)}")


KNOWN: dict[Any, Decoder[Any]] = {
    int: count_of,
    str: lambda value: exactly(str, value),
    bool: lambda value: exactly(bool, value),
    float: lambda value: value if type(value) is int else exactly(float, value),
    Json: lambda value: value,
}


def record(
    kind: Callable[..., T],
    holds: Callable[[T], bool] | None = None,
    form: Sequence[int] = (),
    absent: Mapping[str, Json] = {},
) -> Decoder[T]:
    """Of an object with the fields of `kind`, which `holds`; `form`: the numbers that its `format` may be.

    `absent`: fields that may be left out, and what is there then.

    A field `rest` takes what has other names: a program of another release wrote them, so they stay. It takes
    `format`, too, unless that is the last of `form`.
    """
    cls: Any = kind
    fields = {name: decoder(of) for name, of in _annotations(cls).items() if name != "rest"}
    noun, has_rest = cls.__name__.lower(), "rest" in _annotations(cls)

    def decode(value: Any) -> T:
        given = exactly(dict, value)
        if absent:
            given = {**absent, **given}
        if form and given.get("format") not in form:
            found = brief(given.get("format"))
            raise Misfit(f"{noun} of format {found}, and this version knows {form[-1]}")
        if given.keys() >= fields.keys():
            known = {name: of(given[name]) for name, of in fields.items()}
            if has_rest:
                rest = {name: given[name] for name in given if name not in fields}
                if form and rest["format"] == form[-1]:
                    del rest["format"]
                known["rest"] = rest
            made = kind(**known)
            if holds is None or holds(made):
                return made
        raise Misfit(f"no {noun}: {brief(value)}")

    return decode


def row(kind: Any, holds: Callable[[Any], bool] | None = None) -> Decoder[Any]:
    """Of a list with the places of `kind`, a named tuple or a `tuple[...]`, which `holds`."""
    places = [decoder(of) for of in get_args(kind) or _annotations(kind).values()]
    make = getattr(kind, "_make", tuple)

    def decode(value: Any) -> Any:
        if isinstance(value, list) and len(value) == len(places):
            made = make([of(each) for of, each in zip(places, value, strict=True)])
            if holds is None or holds(made):
                return made
        raise Misfit(f"no {kind.__name__.lower()}: {brief(value)}")

    return decode


def _annotations(kind: Any) -> Mapping[str, Any]:
    """The fields of a class and of those that it extends, with their types."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("__annotations__", {})
    return found


def decoder(kind: Any) -> Decoder[Any]:
    """Of a field, or of a place in a list, of this type."""
    if kind in KNOWN:
        return KNOWN[kind]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None
        known = decoder(parts[0])
        return lambda value: None if value is None else known(value)
    if origin is None or (origin is tuple and ... not in parts):
        return row(kind)
    of = decoder(parts[0 if origin in (list, tuple) else 1])
    if origin in (list, tuple):
        return lambda value: origin(map(of, exactly(list, value)))
    return lambda value: {name: of(each) for name, each in exactly(dict, value).items()}
