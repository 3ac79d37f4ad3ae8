"""Objects as zstd frames, in a log whose shape says so: segments, runs, pages and large values.

No JSON begins as a frame does, so a reader takes either form of any object. The one package that is needed is
part of Python from 3.14 on; before it is the same code (`backports.zstd`).
"""

import sys
from typing import Any

from leaderless.errors import Definite
from leaderless.store.options import install
from leaderless.store.port import Refused

MAGIC = b"\x28\xb5\x2f\xfd"
INSTALL = f"it needs the package backports.zstd: {install('zstd')}"


def require_zstd(what: str) -> None:
    """Raise `Definite` if the package that `what` needs is not installed."""
    try:
        _zstd()
    except Refused as refused:
        raise Definite(f"{what}: {refused}") from None


def compressed(text: bytes) -> bytes:
    """The shorter one of the bytes and a frame of them, which has a checksum. Raises `Refused` as `plain`."""
    zstd = _zstd()
    frame: bytes = zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: 1})
    return min(text, frame, key=len)


def plain(stored: bytes, bytes_max: int) -> bytes:
    """What stored bytes stand for: themselves, or what is in the frame that they are.

    Raises `ValueError` for a frame that is damaged, does not say its size, or has more than `bytes_max`: no
    more is unpacked. Raises `Refused` where the package is missing.
    """
    if not stored.startswith(MAGIC):
        return stored
    zstd = _zstd()
    try:
        size = zstd.get_frame_info(stored).decompressed_size
        if size is None or size > bytes_max:
            raise ValueError(f"a zstd frame of {size} bytes, of at most {bytes_max}")
        reader = zstd.ZstdDecompressor()
        text: bytes = reader.decompress(stored, size + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"no zstd frame: {error}") from None
    if not reader.eof or reader.unused_data:
        raise ValueError(f"no whole zstd frame: {len(text)} of {size} bytes")
    return text


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise Refused(INSTALL) from None
    return zstd
