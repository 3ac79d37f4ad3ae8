"""Fressian read into JSON-like Python values: the real tool's network journal.

A journal is a folder of stripes, each a run of Fressian objects without end marker: records tagged
`ev` (id, time_ns, :send or :recv, message) holding records tagged `msg` (id, src, dest, body).
Codes and caches are those of the format's public reference implementation, Datomic/fressian:

- most values are one code byte with a small integer or length packed into it, then the rest;
- *priority cache*: code PUT reads a value and remembers it; later codes name it by its index;
- *struct cache*: the first use of a tag gives its name and number of fields, later ones its index.

Keywords and symbols become strings, sets lists, and map keys strings. What the real tool never writes (footers,
emptied caches, open lists) is refused.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

_SMALL_INTEGERS = 0x40  # the commonest case: below it, a code is an integer itself
_END_OF_LIST = 0xFD


class FressianError(Exception):
    """The bytes are not Fressian as far as known here; `offset` is where reading stopped."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} at byte {offset}")
        self.offset = offset


def journal_events(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of one stripe, in the order written.

    Args:
        data: the content of one `net-journal/*.fressian`.
    Yields:
        {"id", "time" (ns), "type": "send"|"recv", "message": {"id", "src", "dest", "body"}}
    Raises:
        FressianError: after the last complete event, if the stripe goes on but cannot be read:
            a bench that was killed leaves a cut record.
    """
    reader = FressianReader(data)
    while reader.position < len(data):
        start = reader.position
        event = _complete(reader, start)
        if not isinstance(event, dict) or "message" not in event:
            raise FressianError("not a journal event", start)
        yield event


def _complete(reader: "FressianReader", start: int) -> Any:
    try:
        return reader.read()
    except (IndexError, struct.error):
        raise FressianError("the file ends inside a record which starts", start) from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise FressianError(f"malformed record ({error}) which starts", start) from error


class FressianReader:
    """Reads objects one after the other; `position` is the offset of the next byte."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self._cache: list[Any] = []
        self._structs: list[tuple[str, int]] = []

    def read(self) -> Any:
        """The next object. IndexError or struct.error when the data ends inside it."""
        code = self.data[self.position]
        self.position += 1
        return code if code < _SMALL_INTEGERS else _CODES[code](self, code)

    def byte(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def take(self, size_bytes: int) -> bytes:
        if size_bytes < 0:
            self._fail("negative length")
        end = self.position + size_bytes
        if end > len(self.data):
            raise IndexError
        chunk = self.data[self.position : end]
        self.position = end
        return chunk

    def unpack(self, form: struct.Struct) -> Any:
        (value,) = form.unpack(self.take(form.size))
        return value

    def objects(self, count: int) -> list[Any]:
        return [self.read() for _ in range(count)]

    def cached(self, index: int) -> Any:
        return self._cache[index] if index < len(self._cache) else self._fail("no such cache entry")

    def remember(self) -> Any:
        index = len(self._cache)  # reserved before reading: what is inside comes after it
        self._cache.append(None)
        self._cache[index] = value = self.read()
        return value

    def define_struct(self) -> Any:
        definition = (self.read(), self.read())
        self._structs.append(definition)
        return self.tagged(*definition)

    def known_struct(self, index: int) -> Any:
        known = index < len(self._structs)
        return self.tagged(*self._structs[index]) if known else self._fail("no such struct")

    def tagged(self, tag: str, count: int) -> Any:
        build = _TAGS.get(tag)
        fields = self.objects(count)
        return build(*fields) if build else {"tag": tag, "value": fields}

    def listed(self) -> list[Any]:
        """Objects until their end."""
        items = []
        while self.data[self.position] != _END_OF_LIST:
            items.append(self.read())
        self.position += 1
        return items

    def chunked(self, more: int, last: range, whole: int) -> bytes:
        """Bytes in chunks: `more` says that another follows, `last` and `whole` end them."""
        chunks = [self.take(self.read())]
        while (code := self.byte()) == more:
            chunks.append(self.take(self.read()))
        if code not in last and code != whole:
            self._fail(f"code {code:#x} inside a chunked value")
        chunks.append(self.take(self.read() if code == whole else code - last.start))
        return b"".join(chunks)

    def _fail(self, reason: str) -> Any:
        raise FressianError(reason, self.position)


def _text(raw: bytes) -> str:
    if raw.isascii():
        return raw.decode("ascii")
    # Java writes what lies beyond 16 bits as two surrogates of three bytes each.
    halves = raw.decode("utf-8", "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16")


def _named(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


_TAGS: dict[str, Callable[..., Any]] = {
    "ev": lambda id_, time_ns, type_, message: {
        "id": id_,
        "time": time_ns,
        "type": type_,
        "message": message,
    },
    "msg": lambda id_, src, dest, body: {"id": id_, "src": src, "dest": dest, "body": body},
    "map": lambda items: dict(zip(map(str, items[::2]), items[1::2], strict=True)),
    "set": lambda items: items,
    "key": _named,
    "sym": _named,
    "bigint": lambda raw: int.from_bytes(raw, "big", signed=True),
    "ratio": lambda numerator, denominator: numerator / denominator,
    "char": chr,
    "byte": lambda value: value,
}

_Decode = Callable[[FressianReader, int], Any]
_FLOAT, _DOUBLE, _LONG = struct.Struct(">f"), struct.Struct(">d"), struct.Struct(">q")
_BYTES, _STRING, _LIST = range(0xD0, 0xD8), range(0xDA, 0xE2), range(0xE4, 0xEC)
_CACHED, _STRUCTS = range(0x80, 0xA0), range(0xA0, 0xB0)
# Tags with a code of their own, and their number of fields.
_OWN_CODES = {
    0xC0: ("map", 1),
    0xC1: ("set", 1),
    0xC3: ("uuid", 2),
    0xC4: ("regex", 1),
    0xC5: ("uri", 1),
    0xC6: ("bigint", 1),
    0xC7: ("bigdec", 2),
    0xC8: ("inst", 1),
    0xC9: ("sym", 2),
    0xCA: ("key", 2),
}
# Integers of 2 to 7 bytes: the high bits are the code's distance from the code of zero.
_INTEGERS = (
    (range(0x40, 0x60), 0x50),
    (range(0x60, 0x70), 0x68),
    (range(0x70, 0x74), 0x72),
    (range(0x74, 0x78), 0x76),
    (range(0x78, 0x7C), 0x7A),
    (range(0x7C, 0x80), 0x7E),
)


def _integer(size: int, zero: int) -> _Decode:
    if size == 1:  # in a third of the time
        return lambda reader, code: (code - zero << 8) + reader.byte()
    return lambda reader, code: (code - zero << 8 * size) + int.from_bytes(reader.take(size), "big")


_CODES: dict[int, _Decode] = {
    **dict.fromkeys(range(0x100), lambda reader, code: reader._fail(f"unknown code {code:#x}")),
    **{
        code: _integer(size, zero)
        for size, (codes, zero) in enumerate(_INTEGERS, start=1)
        for code in codes
    },
    **dict.fromkeys(_OWN_CODES, lambda reader, code: reader.tagged(*_OWN_CODES[code])),
    **dict.fromkeys(_CACHED, lambda reader, code: reader.cached(code - _CACHED.start)),
    **dict.fromkeys(_STRUCTS, lambda reader, code: reader.known_struct(code - _STRUCTS.start)),
    **dict.fromkeys(_BYTES, lambda reader, code: reader.take(code - _BYTES.start)),
    **dict.fromkeys(_STRING, lambda reader, code: _text(reader.take(code - _STRING.start))),
    **dict.fromkeys(_LIST, lambda reader, code: reader.objects(code - _LIST.start)),
    0xCC: lambda reader, _: reader.cached(reader.read()),
    0xCD: lambda reader, _: reader.remember(),
    0xD8: lambda reader, _: reader.chunked(0xD8, range(0), 0xD9),
    0xD9: lambda reader, _: reader.take(reader.read()),
    0xE2: lambda reader, _: _text(reader.chunked(0xE2, _STRING, 0xE3)),
    0xE3: lambda reader, _: _text(reader.take(reader.read())),
    0xEC: lambda reader, _: reader.objects(reader.read()),
    0xED: lambda reader, _: reader.listed(),
    0xEF: lambda reader, _: reader.define_struct(),
    0xF0: lambda reader, _: reader.known_struct(reader.read()),
    0xF5: lambda *_: True,
    0xF6: lambda *_: False,
    0xF7: lambda *_: None,
    0xF8: lambda reader, _: reader.unpack(_LONG),
    0xF9: lambda reader, _: reader.unpack(_FLOAT),
    0xFA: lambda reader, _: reader.unpack(_DOUBLE),
    0xFB: lambda *_: 0.0,
    0xFC: lambda *_: 1.0,
    0xFF: lambda *_: -1,
}
