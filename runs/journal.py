"""The network journal: each message when it was sent, and again when it was received.

A line is `{"id":4,"time":<ns>,"type":"send"|"recv","message":{"id":2,"src":...,"dest":...,"body":...}}`; `id`
counts lines and, inside, messages; a lost message has no `recv`. Lines are put together from bytes that were
encoded already and leave in large writes, because this is the hottest path of the bench.
"""

import gzip
import shutil
from pathlib import Path

from runs.writing import LineBuffer

_BUFFER_LINES = 4096
COMPRESS_ABOVE_BYTES = 16 * 2**20


class Journal(LineBuffer):
    """Writes lines to a file; the caller closes it with `close`."""

    _count = 0

    def sent(self, time_ns: int, message: bytes) -> None:
        """Note that the message (its JSON, with its `id`) entered the network."""
        self.lines.append(
            b'{"id":%d,"time":%d,"type":"send","message":%b}\n' % (self._count, time_ns, message)
        )
        self._count += 1

    def received(self, time_ns: int, message: bytes) -> None:
        """Note that the message was handed to its destination."""
        self.lines.append(
            b'{"id":%d,"time":%d,"type":"recv","message":%b}\n' % (self._count, time_ns, message)
        )
        self._count += 1
        if len(self.lines) >= _BUFFER_LINES:
            self.flush()


def compress_if_large(path: Path, above_bytes: int = COMPRESS_ABOVE_BYTES) -> Path:
    """Replace a journal of more than `above_bytes` by its gzipped form, and return the path that is there then.

    Without room for both, the plain one stays.
    """
    if path.stat().st_size <= above_bytes:
        return path
    packed = path.with_name(path.name + ".gz")
    try:
        with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as target:
            shutil.copyfileobj(plain, target, 2**20)
    except BaseException as error:  # Ctrl-C, too, leaves one of the two and not both
        packed.unlink(missing_ok=True)
        if isinstance(error, OSError):
            return path
        raise
    path.unlink()
    return packed
