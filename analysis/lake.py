"""The lake: Parquet tables in a folder, with one commit file per run.

    lake/operations/run_id=R/version=V/part-*.parquet      and so for every table
    lake/_commits/R.json                                   which V of R is the valid one

A run is written under a new version, and becomes visible when its commit file is replaced, in one
step for all tables. An ingest that is killed before leaves files which no commit names: readers never
see them, and the next ingest of that run deletes them. So readers always find whole runs, and twice
is once. Not a guarantee: two ingests of the *same* run at the same time may delete each other's files.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from analysis.errors import AnalysisError
from analysis.schemas.tables import TABLES

# Part of the fingerprint: raise it when the same files would now give other tables.
TABLES_VERSION = 1
COMMITS = "_commits"  # Spark skips names that start with an underscore
_PARTITIONS = ("run_id", "version")

Write = Callable[[str, DataFrame], None]


@dataclass(frozen=True)
class Commit:
    """What the lake holds of one run."""

    run_id: str
    version: str
    source: str  # the folder it was read from
    fingerprint: str


@dataclass(frozen=True)
class Lake:
    """Reads and writes the tables under `folder`."""

    folder: Path

    def commits(self) -> list[Commit]:
        """The runs in the lake, sorted by name."""
        files = sorted(self.folder.glob(f"{COMMITS}/*.json"))
        return [Commit(**json.loads(file.read_text())) for file in files]

    def commit_of(self, run_id: str) -> Commit | None:
        """What the lake holds of a run, or None."""
        file = self._commit_file(run_id)
        return Commit(**json.loads(file.read_text())) if file.exists() else None

    def table(self, spark: SparkSession, name: str, run_ids: Sequence[str] = ()) -> DataFrame:
        """A table, of some runs or (by default) of all, with the column `run_id` first.

        Raises:
            AnalysisError: the lake holds none of these runs.
        """
        chosen = [commit for commit in self.commits() if not run_ids or commit.run_id in run_ids]
        if not chosen:
            wanted = ", ".join(run_ids) or "any run"
            raise AnalysisError(f"the lake {self.folder} does not hold {wanted}; ingest it first")
        paths = [str(self._part(name, commit.run_id, commit.version)) for commit in chosen]
        partitions = [StructField(partition, StringType()) for partition in _PARTITIONS]
        schema = StructType(TABLES[name].fields + partitions)
        reader = spark.read.schema(schema).option("basePath", str(self.folder / name))
        return reader.parquet(*paths).select("run_id", *TABLES[name].names)

    @contextmanager
    def writing(self, run_id: str, *, source: str, fingerprint: str) -> Iterator[Write]:
        """Gives a function that writes one table of a run; commits when the block ends well."""
        version = uuid.uuid4().hex[:12]

        def write(name: str, frame: DataFrame) -> None:
            columns = [F.col(field.name).cast(field.dataType) for field in TABLES[name]]
            frame.select(columns).write.parquet(str(self._part(name, run_id, version)))

        yield write
        self._commit(Commit(run_id, version, source, fingerprint))
        self._delete_other_versions(run_id, version)

    def _commit(self, commit: Commit) -> None:
        file = self._commit_file(commit.run_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{commit.version}.tmp")
        fresh.write_text(json.dumps(asdict(commit), indent=2) + "\n")
        fresh.replace(file)

    def _delete_other_versions(self, run_id: str, version: str) -> None:
        for name in TABLES:
            for part in self._part(name, run_id, version).parent.glob("version=*"):
                if part.name != f"version={version}":
                    shutil.rmtree(part)

    def _commit_file(self, run_id: str) -> Path:
        return self.folder / COMMITS / f"{run_id}.json"

    def _part(self, name: str, run_id: str, version: str) -> Path:
        return self.folder / name / f"run_id={run_id}" / f"version={version}"
