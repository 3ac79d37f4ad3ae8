"""Objects as zstd frames, in a log whose shape says so: segments, runs, pages and large values.

No JSON begins as a frame does, so a reader takes either form of any object. The one package that is needed is
part of Python from 3.14 on; before it is the same code (`backports.zstd`).
"""

import sys
from importlib import import_module
from typing import Any

from leaderless.core.shape import Compression, Shape
from leaderless.errors import Definite
from leaderless.store.options import install
from leaderless.store.port import Refused

MAGIC = b"\x28\xb5\x2f\xfd"
REGISTER_BYTES = Shape().register_bytes  # no program shares a log of larger registers
_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def require_zstd(compression: Compression, url: str) -> None:
    """Raise `Definite` if a log at `url` has this compression, and the package for it is not installed."""
    try:
        _ = compression == "none" or _zstd()
    except Refused as refused:
        raise Definite(f"the log at {url} is compressed: {refused}") from None


def compressed(text: bytes) -> bytes:
    """The shorter one of the bytes and a frame of them, which has a checksum. Raises `Refused` as `plain`."""
    zstd = _zstd()
    frame: bytes = zstd.compress(text, options={zstd.CompressionParameter.checksum_flag: 1})
    return min(text, frame, key=len)


def plain(stored: bytes, bytes_max: int = REGISTER_BYTES) -> bytes:
    """What stored bytes stand for: themselves, or what is in the frame that they are.

    Raises `ValueError` for a frame that is damaged, or has more than `bytes_max`: no more is unpacked. Raises
    `Refused` where the package is missing.
    """
    if not stored.startswith(MAGIC):
        return stored
    zstd = _zstd()
    reader = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: REGISTER_BYTES.bit_length() - 1}
    )
    try:
        text: bytes = reader.decompress(stored, bytes_max + 1)
    except zstd.ZstdError as error:
        raise ValueError(f"no zstd frame: {error}") from None
    if not reader.eof or reader.unused_data or len(text) > bytes_max:
        raise ValueError(f"no whole zstd frame of at most {bytes_max} bytes")
    return text


def _zstd() -> Any:
    try:
        return import_module(_MODULE)
    except ImportError:
        raise Refused(f"it needs the package backports.zstd: {install('zstd')}") from None
