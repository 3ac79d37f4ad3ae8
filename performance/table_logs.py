"""The logs that `performance.table_in_spark` reads, and what they take on disk."""

import sqlite3
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import anyio
import click

from leaderless.core.headlog.records import merge
from leaderless.spark.reading import snapshot_of
from leaderless.spark.settings import Place
from leaderless.store.files import files_of
from leaderless.store.options import StoreOptions
from leaderless.store.registers import canonical
from leaderless.table.snapshot import FileRef
from performance.compacted_log import bytes_of, generate, run_of, upkept_of
from performance.generated_rows import Shape
from performance.memory import MB

BATCH = 8_000  # messages in a batch of the log: just below its size
WIDTH = 98  # of a value, 100 bytes as JSON


class Sizes(NamedTuple):
    """What a log takes on disk.

    `files`: how many Parquet files; `files_mb`: their size, `json_mb`: that of the same runs as JSON,
    `pages_mb`: that of the index's pages. `written`: how many times compaction and merges write a byte of a
    file.
    """

    files: int
    files_mb: float
    json_mb: float
    pages_mb: float
    written: float


class TableLog:
    """A log of `messages` messages of `keys` keys below `folder`.

    `shape`: of its messages. The question for a range of one key asks for the records of `key` below offset
    `last`.
    """

    def __init__(self, folder: Path, messages: int, keys: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.database = folder / "log.db"
        self.url = f"sqlite:///{self.database}"
        self.place = Place(self.url, None, StoreOptions())
        self.folder, self.messages, self.keys = folder, messages, keys
        self.shape = Shape(messages, keys, WIDTH, BATCH)
        self.key, self.last = self.shape.names[keys // 2], messages // keys // 2

    def generate(self) -> None:
        """Write the log, unless an earlier run has."""
        if not self.database.exists():
            anyio.run(self._generate)
        if not self.refs:
            raise click.ClickException("so few messages fill no file: ask for 200000 or more")

    async def _generate(self) -> None:
        store = self.place.store()
        await generate(store, self.shape)
        await store.aclose()

    @cached_property
    def refs(self) -> list[FileRef]:
        """The Parquet files in the log's list."""
        return snapshot_of(self.place).files

    @cached_property
    def files(self) -> list[str]:
        """Where the Parquet files are."""
        files = files_of(self.place.store())
        assert files is not None
        return [files.location(ref.path) for ref in self.refs]

    @property
    def in_files(self) -> int:
        """The messages in files."""
        return len(self.shape.numbers(0, self.refs[-1].end))

    def sizes(self) -> Sizes:
        """What the log takes on disk."""
        run = run_of(0)
        segments = [self.shape.segment(number) for number in range(run.first, run.last + 1)]
        json = len(canonical(merge(segments).value)) / (run.end * BATCH)
        in_files = sum(Path(file).stat().st_size for file in self.files)
        done = upkept_of(self.shape)
        kept = bytes_of(done.files)
        written = kept and sum(map(bytes_of, done.merges)) / kept
        return Sizes(
            len(self.files), in_files / MB, json * self.in_files / MB, self._pages_mb(), 1 + written
        )

    def _pages_mb(self) -> float:
        """What the pages of the index take."""
        with closing(sqlite3.connect(self.database)) as connection:
            statement = "SELECT total(length(value)) FROM objects WHERE key LIKE 'page/%'"
            [[found]] = connection.execute(statement)
        return float(found) / MB
