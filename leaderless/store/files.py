"""Files of a store: objects that are written whole, never change, and are read in ranges.

A store that has them (`files_of`) can keep runs as Parquet. In a bucket they are objects beside the others.
Beside a SQLite file they are plain files in a folder, so that other programs can read them. Calls block; an
event loop makes them in threads.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from leaderless.store.port import Listed, OutcomeUnknown, Refused, Store, StoreError
from leaderless.store.wrapped import Counted, Within, Wrapped

Source = bytes | BinaryIO  # of a file's content; an open file is read from where it stands
UNFINISHED = (
    "unfinished-"  # begins the names of local files that are not whole; `vacuum` deletes old ones
)
WHOLE_BYTES_MAX = 16 << 20  # of a file that is written in one request

CHUNK_BYTES = 1 << 20  # in memory of a file that is copied
_ONLY_FILES = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # no link, and a pipe is no file either
_NAME = r"(?!\.)[\w.=-]+"
_INSIDE = re.compile(f"{_NAME}(?:/{_NAME})*", re.ASCII)


class Gone(StoreError):
    """There is no such file, or not any more: a reader was slower than the retention of what it reads."""


class Files(Protocol):
    """Files by their path, such as `run/0-15.parquet`. Every method may raise `Refused` and
    `OutcomeUnknown`."""

    def put(self, path: str, source: Source) -> None:
        """Make a file, durable and visible as a whole; a small one that exists already is left as it is.

        A file above `WHOLE_BYTES_MAX` must have a path that nobody else writes.
        """
        ...

    def size(self, path: str) -> int:
        """Its bytes. Raises `Gone`."""
        ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes from `start` on, never fewer. Raises `Gone`."""
        ...

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; those that do not exist are passed over."""
        ...

    def list_files(self, folder: str) -> Iterator[Listed]:
        """Every file below a folder, with its size and the time of its writing."""
        ...

    def location(self, path: str) -> str:
        """The URL or the path under which other programs find it."""
        ...


def size_if_there(files: Files, path: str) -> int | None:
    """The bytes of a file; None: there is none. Raises `Refused` and `OutcomeUnknown`."""
    try:
        return files.size(path)
    except Gone:
        return None


def require_length(content: bytes, length: int, path: str) -> bytes:
    """What was read of a file. Raises `OutcomeUnknown` when it is not as long as was asked for."""
    if len(content) != length:
        raise OutcomeUnknown(f"{path}: {len(content)} bytes came, not {length}")
    return content


def files_of(store: Store) -> Files | None:
    """The files of a store; None where it can keep none."""
    found: Files | None = getattr(store, "files", None)
    if found is None and isinstance(store, Within | Counted):
        inner = files_of(store.outer)
        return inner and FilesAround(inner, store)
    return found


class FilesAround:
    """The files of a store as one around it has them: below its prefix, or counted."""

    def __init__(self, files: Files, around: Wrapped) -> None:
        self._files = files
        self._full, self._took = around.full, around.took

    def put(self, path: str, source: Source) -> None:
        """See `Files`."""
        self._files.put(self._full(path), source)
        self._took("put", len(source) if isinstance(source, bytes) else source.tell())

    def size(self, path: str) -> int:
        """See `Files`."""
        self._took("get")
        return self._files.size(self._full(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        self._took("get", 0, length)
        return self._files.read_range(self._full(path), start, length)

    def delete(self, paths: Sequence[str]) -> None:
        """See `Files`."""
        self._took("delete")
        self._files.delete([*map(self._full, paths)])

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `Files`."""
        self._took("list")
        for listed in self._files.list_files(self._full(folder)):
            yield listed._replace(key=listed.key.removeprefix(self._full("")))

    def location(self, path: str) -> str:
        """See `Files`."""
        return self._files.location(self._full(path))


class FolderFiles:
    """Files in a folder of a local disk, which is made when the first one is written."""

    def __init__(self, folder: Path) -> None:
        # The folder itself must be no link: it could lead to another log.
        self._folder = folder.parent.resolve() / folder.name

    def put(self, path: str, source: Source) -> None:
        """See `Files`."""
        file = self._file(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = file.parent / f"{UNFINISHED}{secrets.token_hex(8)}"
            try:
                _write_durably(unfinished, source)
                with suppress(FileExistsError):
                    os.link(unfinished, file)
            finally:
                unfinished.unlink(missing_ok=True)
            for folder in (file.parent, *file.parent.parents):  # some of them may be new
                _sync_folder(folder)
                if folder == self._folder.parent:
                    break
        except OSError as error:  # such as a full disk
            raise OutcomeUnknown(f"{file}: {error}") from error

    def size(self, path: str) -> int:
        """See `Files`."""
        file = self._file(path)
        with _told(file):
            return file.lstat().st_size

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        file = self._file(path)
        with _told(file), os.fdopen(os.open(file, _ONLY_FILES), "rb", 0) as source:
            return require_length(os.pread(source.fileno(), length, start), length, str(file))

    def delete(self, paths: Sequence[str]) -> None:
        """See `Files`."""
        for file in map(self._file, paths):
            with _told(file):
                file.unlink(missing_ok=True)

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `Files`."""
        for file in sorted(self._file(f"{folder}/any").parent.rglob("[!.]*")):
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                status = file.lstat()
                key = file.relative_to(self._folder).as_posix()
                yield Listed(key, status.st_size, status.st_mtime)

    def location(self, path: str) -> str:
        """See `Files`."""
        return str(self._file(path).absolute())

    def _file(self, path: str) -> Path:
        """Where a file is. Raises `Refused` for a path that leaves the folder, by itself or by a link in it."""
        file = self._folder / path
        inside = _INSIDE.fullmatch(path) and file.parent.resolve()
        if not (inside and inside.is_relative_to(self._folder)):
            hint = (
                ". It is a link: put the folder itself there" if self._folder.is_symlink() else ""
            )
            raise Refused(
                f"{path!r} is no file in {self._folder}: nothing outside is touched{hint}"
            )
        return file


def _write_durably(file: Path, source: Source) -> None:
    with file.open("wb") as target:
        if isinstance(source, bytes):
            target.write(source)
        else:
            shutil.copyfileobj(source, target, CHUNK_BYTES)
        target.flush()
        os.fsync(target.fileno())


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Raise `Gone` or `OutcomeUnknown` for what the system says of a file."""
    try:
        yield
    except FileNotFoundError as error:
        raise Gone(f"{file} is not there, or not any more") from error
    except OSError as error:
        raise OutcomeUnknown(f"{file}: {error}") from error


class MemoryFiles:
    """Files in memory."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, float]] = {}

    def put(self, path: str, source: Source) -> None:
        """See `Files`."""
        content = source if isinstance(source, bytes) else source.read()
        self._files.setdefault(path, (content, time.time()))

    def size(self, path: str) -> int:
        """See `Files`."""
        return len(self._content(path))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """See `Files`."""
        return require_length(self._content(path)[start : start + length], length, path)

    def delete(self, paths: Sequence[str]) -> None:
        """See `Files`."""
        for path in paths:
            self._files.pop(path, None)

    def list_files(self, folder: str) -> Iterator[Listed]:
        """See `Files`."""
        return (
            Listed(path, len(content), written_at)
            for path, (content, written_at) in sorted(self._files.items())
            if path.startswith(f"{folder}/")
        )

    def location(self, path: str) -> str:
        """See `Files`."""
        return path

    def _content(self, path: str) -> bytes:
        try:
            return self._files[path][0]
        except KeyError:
            raise Gone(f"{path} is not there, or not any more") from None
