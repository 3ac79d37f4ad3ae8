"""Finding the runs under a path, and the files of a run."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import AnalysisError

HISTORIES = ("history.jsonl", "history.jsonl.gz", "history.edn", "history.edn.gz")
RESULTS = ("results.json", "results.edn")
JOURNALS = ("net-journal.jsonl", "net-journal.jsonl.gz")
STRIPES = "net-journal"
OPTIONS = "test.json"
_TIMESTAMP = re.compile(r"\d{8}T\d{6}")


@dataclass(frozen=True)
class Run:
    """The files of one run. Where a run has a file in two forms, the one that Spark reads itself."""

    run_id: str
    folder: Path
    history: Path
    results: Path | None
    journal: tuple[Path, ...]  # one file of JSON lines, or the Fressian stripes, or nothing
    options: Path | None

    @property
    def engine(self) -> str:
        """Which tool left it: only the embedded bench writes its options as JSON."""
        return "embedded" if self.options else "jepsen"

    def files(self) -> list[Path]:
        """All files that are read, in a fixed order."""
        single = [self.history, self.results, self.options]
        return [file for file in single if file] + list(self.journal)

    def fingerprint(self) -> str:
        """Changes when a file that is read changes in name, size or time of change."""
        stats = [(file.name, file.stat()) for file in self.files()]
        facts = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
        return hashlib.sha256(facts.encode()).hexdigest()[:16]


def find_runs(path: Path) -> list[Run]:
    """The runs at or below `path`, sorted by name; symbolic links (`latest`) count once.

    Raises:
        AnalysisError: there is nothing, or no run, at `path`.
    """
    if not path.exists():
        raise AnalysisError(f"{path} does not exist")
    folders = {file.parent.resolve() for name in HISTORIES for file in _named(path, name)}
    if not folders:
        raise AnalysisError(
            f"{path} holds no run: there is no history.jsonl or history.edn in it or below it"
        )
    return [_run(folder) for folder in sorted(folders)]


def find_run(folder: Path) -> Run:
    """The one run in `folder`.

    Raises:
        AnalysisError: there is none, or several below it.
    """
    runs = find_runs(folder)
    if len(runs) > 1:
        names = ", ".join(run.run_id for run in runs[:3])
        raise AnalysisError(f"{folder} holds {len(runs)} runs ({names}, ...); name one of them")
    return runs[0]


def _named(path: Path, name: str) -> list[Path]:
    here = path.resolve() / name
    return [here] if here.is_file() else sorted(path.resolve().rglob(name))


def _run(folder: Path) -> Run:
    history = _first(folder, HISTORIES)
    assert history is not None, "found by its history"
    journal = _first(folder, JOURNALS)
    stripes = sorted(folder.glob(f"{STRIPES}/*.fressian"))
    return Run(
        run_id=run_id_of(folder),
        folder=folder,
        history=history,
        results=_first(folder, RESULTS),
        journal=(journal,) if journal else tuple(stripes),
        options=_first(folder, (OPTIONS,)),
    )


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def run_id_of(folder: Path) -> str:
    """The run's name in the lake: `kafka-20261120T101500.123` for `results/kafka/20261120T101500.123`.

    A folder whose name is no time stands for itself, as stores with a given name do.
    """
    timed = _TIMESTAMP.match(folder.name)
    name = f"{folder.parent.name}-{folder.name}" if timed else folder.name
    return re.sub(r"[^\w.-]", "_", name)
