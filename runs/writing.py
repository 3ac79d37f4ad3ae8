"""Writing files so that a full disk leaves whole lines and whole documents.

Neither a history whose last line is torn nor half a `test.json` could be read later.
"""

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol


class Lines(Protocol):
    """Where lines go: a `LineFile`, or any binary file."""

    def write(self, lines: bytes, /) -> Any:
        """Append lines, each with its newline."""

    def close(self) -> None:
        """Close it."""


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
        with draft.open("w", encoding="utf-8") as file:
            file.writelines(parts)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
