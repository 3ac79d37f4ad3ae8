"""Where a simulated run writes: a digest always, a file or memory when what is written is wanted."""

import hashlib
import io
from typing import BinaryIO


class Ledger(io.RawIOBase):
    """A file that is written once; `digest` is of all that was written."""

    def __init__(self, copy: BinaryIO | None = None, keep: bool = False) -> None:
        super().__init__()
        self._hash = hashlib.blake2b(digest_size=16)
        self._copy = copy
        self._kept: list[bytes] | None = [] if keep else None

    def write(self, data: bytes) -> int:  # type: ignore[override]  # only bytes are written here
        """Take some more."""
        self._hash.update(data)
        if self._copy:
            self._copy.write(data)
        if self._kept is not None:
            self._kept.append(data)
        return len(data)

    def close(self) -> None:
        """Close the copy too."""
        if self._copy:
            self._copy.close()
        super().close()

    def digest(self) -> bytes:
        """Of everything so far."""
        return self._hash.digest()

    @property
    def content(self) -> bytes:
        """Everything that was written, if it was to be kept."""
        return b"".join(self._kept or ())
