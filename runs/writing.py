"""Writing files so that a full disk leaves whole lines and whole documents.

Neither a history whose last line is torn nor half a `test.json` could be read later.

The network journal: each message when it was sent, and again when it was received.

A line is `{"id":4,"time":<ns>,"type":"send"|"recv","message":{"id":2,"src":...,"dest":...,"body":...}}`; `id`
counts lines and, inside, messages; a lost message has no `recv`. Lines are put together from bytes that were
encoded already and leave in large writes, because this is the hottest path of the bench.
"""

import contextlib
import gzip
import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol


class Lines(Protocol):
    """Where lines go: a `LineFile`, or any binary file."""

    def write(self, lines: bytes, /) -> Any:
        """Append lines, each with its newline."""

    def close(self) -> None:
        """Take no more lines."""


class LineBuffer:
    """Collects `lines`, each with its newline, and writes them to a file together."""

    def __init__(self, file: Lines) -> None:
        self.lines: list[bytes] = []
        self._file = file

    def flush(self) -> None:
        """Write the lines since the last flush (`OSError` when the disk is full)."""
        lines, self.lines = self.lines, []
        self._file.write(b"".join(lines))

    def close(self) -> None:
        """Write what is left, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()


class LineFile:
    """A file to which whole lines are appended, without a buffer of its own.

    When a write fails, as many lines stay as are there as a whole, and `OSError` is raised.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._bytes = 0

    def write(self, lines: bytes, /) -> None:
        """Append them all, or those that there is room for."""
        view, written = memoryview(lines), 0
        try:
            while written < len(lines):
                written += self._file.write(view[written:])
        except OSError:
            written = lines.rfind(b"\n", 0, written) + 1
            with contextlib.suppress(OSError):  # what cannot be truncated stays as it is
                os.truncate(self._file.fileno(), self._bytes + written)
                self._file.seek(self._bytes + written)
            raise
        finally:
            self._bytes += written

    def close(self) -> None:
        self._file.close()


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a text file in one step: another reader sees the old content or the new, and when the
    disk is full (`OSError`) the old one stays.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.draft")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.writelines(parts)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


# ---------------------------------------------------------------- journal

_BUFFER_LINES = 4096
COMPRESS_ABOVE_BYTES = 16 * 2**20


class Journal(LineBuffer):
    """Writes lines to a file; the caller closes it with `close`."""

    _count = 0

    def sent(self, time_ns: int, message: bytes, by: str = "") -> None:
        """Note that the message (its JSON, with its `id`) entered the network; `by`: if not by its `src`."""
        self._note(b"send", time_ns, message, by)

    def received(self, time_ns: int, message: bytes, by: str = "") -> None:
        """Note that the message was handed to its destination."""
        self._note(b"recv", time_ns, message, by)
        if len(self.lines) >= _BUFFER_LINES:
            self.flush()

    def _note(self, event: bytes, time_ns: int, message: bytes, by: str) -> None:
        sender = b'"by":"%b",' % by.encode() if by else b""
        self.lines.append(
            b'{"id":%d,"time":%d,"type":"%b",%b"message":%b}\n'
            % (self._count, time_ns, event, sender, message)
        )
        self._count += 1


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
