"""Names that users chose, as one segment of an object's key: no escape from a folder, no two names alike.

ASCII letters, digits, `_`, `-` and `.` stand for themselves. Every other byte of the UTF-8 text is `=` and two
hexadecimal digits, a leading dot too, and the empty name is a lone `=`. So `..` cannot climb, `a/b` is
another name than `a%2Fb` and `a=2Fb`, and no layer that escapes `%` for a URL can mix them up.
"""

import string

FORMAT = "format"  # the object that says which version of the library made a log
_PLAIN = frozenset((string.ascii_letters + string.digits + "_-.").encode())
SEGMENT_BYTES_MAX = 400  # two of them and our own names stay below the 1024 bytes of a key on S3


def segment_of(name: str) -> str:
    """The segment for a name. Raises `ValueError` for a name that no key has room for, or that is no text."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a name must be text that UTF-8 can write, not {name!r}") from None
    segment = "".join(chr(byte) if byte in _PLAIN else f"={byte:02X}" for byte in encoded)
    if segment.startswith("."):
        segment = f"=2E{segment[1:]}"
    if len(segment) > SEGMENT_BYTES_MAX:
        raise ValueError(
            f"the name {name[:40]!r}... takes {len(segment)} bytes in a key, of at most {SEGMENT_BYTES_MAX}"
        )
    return segment or "="


def name_of(segment: str) -> str:
    """The name of a segment that `segment_of` made. Raises `ValueError` for any other."""
    first, *rest = segment.split("=") if segment != "=" else [""]
    try:
        parts = [bytes.fromhex(part[:2]) + part[2:].encode() for part in rest]
        name = (first.encode() + b"".join(parts)).decode()
        if segment_of(name) == segment:
            return name
    except ValueError:
        pass
    raise ValueError(f"{segment!r} is no escaped name")
