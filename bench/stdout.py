"""A stdout that may go away: a run goes on, is kept and ends with its verdict all the same."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast


@contextmanager
def lenient_stdout() -> Iterator[None]:
    """For as long as this lasts, nothing breaks because stdout does."""
    lenient = _Lenient(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, lenient)):
            yield
    finally:
        lenient.flush()


class _Lenient:
    """Passes everything on to a file. When it cannot be written (`| head`, a full disk), it leads to
    nowhere from then on.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write text, or lose it."""
        try:
            return self._file.write(text)
        except OSError:
            self._lead_nowhere()
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or lose it."""
        try:
            self._file.flush()
        except OSError:
            self._lead_nowhere()

    def _lead_nowhere(self) -> None:
        # The descriptor itself: what is still in buffers goes the same way, also when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
