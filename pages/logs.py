"""A page of a log, without reading the rest of it."""

from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = 128 * 1024
_LONGEST_LINE = 64 * 1024


@dataclass(frozen=True)
class LogPage:
    """Whole lines where lines are not absurdly long; every line is on exactly one page."""

    text: str
    page: int
    pages: int
    size_bytes: int


def read_page(file: Path, page: int) -> LogPage | None:
    """Page number `page`, from 1; None where there is no such page.

    A line belongs to the page in which it begins.
    """
    size = file.stat().st_size
    pages = max(1, -(-size // PAGE_BYTES))
    if not 1 <= page <= pages:
        return None
    start, end = (page - 1) * PAGE_BYTES, page * PAGE_BYTES
    with file.open("rb") as stream:
        stream.seek(max(start - 1, 0))
        if start:
            stream.readline(_LONGEST_LINE)  # the end of a line of the page before
        data = stream.read(end - stream.tell()) if stream.tell() < end else b""
        if data and not data.endswith(b"\n"):
            data += stream.readline(_LONGEST_LINE)
    return LogPage(data.decode(errors="replace"), page, pages, size)
