"""What a Parquet file says of its sizes, asked before anything of it is decompressed.

Arrow reads a footer of `FOOTER_BYTES` at most. Each page of a column begins with a header in Thrift's compact
form, which says how large the page becomes [github.com/apache/parquet-format]. `GROUP_BYTES_MAX` bounds the
pages of a row group. Two encodings grow beyond their pages. Of a dictionary the lengths are added up before
values take its place; prefixes of earlier values (`DELTA_BYTE_ARRAY`) are refused.
"""

import zlib
from base64 import b64decode
from typing import Any

import orjson

FOOTER_BYTES = (
    8 << 20
)  # 1 KB a row group; Arrow takes up to 230 times as much memory for a forged one
DESCRIBED_BYTES = 16 << 20  # of what a file says beside its rows
GROUP_BYTES_MAX = 1 << 26  # of a row group: it may be one record, as large as a register
READ_BYTES_MAX = 1 << 30  # of the row groups that are read at once
ROWS_MAX = 1 << 20  # of a row group
PLACES = {
    0: (5, 2),
    2: (7, 2),
    3: (8, 4),
}  # of a kind of page: its own header there, and its encoding
DICTIONARY = 2
ENCODINGS = {0, 2, 3, 5, 6, 8, 9}  # all that take no more than they say


def described(packed: bytes) -> object:
    """What a file says beside its rows. Raises `ValueError` and `zlib.error`."""
    unpacked = zlib.decompressobj()
    text = unpacked.decompress(b64decode(packed), DESCRIBED_BYTES)
    if unpacked.unconsumed_tail or not unpacked.eof:
        raise ValueError(
            f"what it says of its run has more than {DESCRIBED_BYTES} bytes, or no end"
        )
    return orjson.loads(text)


def unpacked_bytes(content: memoryview, rows: int) -> tuple[int, bool]:
    """The bytes of all pages of a column chunk, and whether a dictionary is among them.

    Raises `ValueError`, `KeyError` or `IndexError` for pages that are not of `rows` rows, or too large.
    """
    at = size = values = 0
    has_dictionary = False
    while at < len(content):
        header, at = _struct(content, at)
        kind, unpacked, packed = header[1], header[2], header[3]
        place, encoding = PLACES[kind]
        own = header[place]
        if own[encoding] not in ENCODINGS or min(unpacked, packed, own[1]) < 0:
            raise ValueError(f"a page has an encoding that is not read, or a size below 0: {own}")
        has_dictionary |= kind == DICTIONARY
        values += 0 if kind == DICTIONARY else own[1]
        size, at = size + unpacked, at + packed
    if at != len(content) or values != rows:
        raise ValueError(
            f"its pages have {values} values and {at} bytes, not {rows} and {len(content)}"
        )
    return size, has_dictionary


def _struct(content: memoryview, at: int) -> tuple[dict[int, Any], int]:
    """The fields of a structure by their numbers, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := content[at]:
        number += head >> 4
        at += 1
        if not head >> 4:
            number, at = _number(content, at)
        match head & 15:
            case 1 | 2 as truth:
                fields[number] = truth == 1
            case 5 | 6:
                fields[number], at = _number(content, at)
            case 8:
                length, at = _varint(content, at)
                at += length
            case 12:
                fields[number], at = _struct(content, at)
            case kind:
                raise ValueError(f"a header of a page has a field of kind {kind}")
    return fields, at + 1


def _number(content: memoryview, at: int) -> tuple[int, int]:
    """A number with its sign in the lowest bit, and where it ends."""
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number in a header of a page has no end")
