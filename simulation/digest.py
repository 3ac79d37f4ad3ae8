"""A file that digests what is written to it, and copies it to another file or to memory on request."""

import hashlib
import io
from typing import BinaryIO


class DigestFile(io.RawIOBase):
    """A file for writing only. `copy` gets the same bytes; `keep` holds them in memory."""

    def __init__(self, copy: BinaryIO | None = None, keep: bool = False) -> None:
        super().__init__()
        self._hash = hashlib.blake2b(digest_size=16)
        self._copy = copy
        self._kept: list[bytes] | None = [] if keep else None

    def write(self, data: bytes) -> int:  # type: ignore[override]  # only bytes are written here
        self._hash.update(data)
        if self._copy:
            self._copy.write(data)
        if self._kept is not None:
            self._kept.append(data)
        return len(data)

    def close(self) -> None:
        if self._copy:
            self._copy.close()
        super().close()

    def digest(self) -> bytes:
        return self._hash.digest()

    @property
    def content(self) -> bytes:
        """Everything so far, with `keep`; otherwise nothing."""
        return b"".join(self._kept or ())
