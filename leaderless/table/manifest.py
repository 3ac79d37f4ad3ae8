"""The list of merged files, a register of the log: which file holds which runs.

    table    {format, epoch, version,
              files: [[path, level, first, last, base, end, rows, bytes, keys], ...],
              replaced: [[path, at], ...], start: [segment, slot, path], trimmed}

The index of the core names runs, and goes on naming them (`leaderless.core.headlog.index`). A merged file
holds consecutive runs, those of the segments `first` to `last`. Files are in the order of their segments,
from segment 0 on and without a gap. So whatever they hold is asked of them, and what comes after is in runs
of its own. `replaced` are files that are no longer needed, and when they were replaced, in seconds since
1970; readers of an older list may still use them. `trimmed`: keys may begin above what files have of them, as
the object at the path of `start` says. `version` counts the changes, so the register never holds one value
twice.

Files are merged by levels, as in a log-structured merge tree (O'Neil et al., 1996). A run is a file of level 0.
`fan` consecutive files of a level become one of the next level, or fewer that have `top_bytes` together. A file
of `large_bytes` is merged no more. So a record is written once for each level below that size:
1 + log(large_bytes / size of a run) / log(fan) times, rounded up.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, takewhile
from reprlib import repr as brief
from typing import NamedTuple

from leaderless.core.coordination import Json, Misfit
from leaderless.core.decoding import KNOWN, record, row
from leaderless.core.shape import FORMATS, LOG_FORMAT
from leaderless.errors import Indefinite
from leaderless.store.calls import read_value
from leaderless.store.names import FILE_FOLDERS, is_file, span_of_run
from leaderless.store.port import Store, StoreError, Version, replaced
from leaderless.store.registers import canonical

TABLE = "table"


class Merged(NamedTuple):
    """A file of several runs, of a level: segments `first` to `last`, slots
    `base` to `end` - 1.

    `keys`: the first and the last one, None without rows.
    """

    path: str
    level: int
    first: int
    last: int
    base: int
    end: int
    rows: int
    bytes: int
    keys: tuple[str, str] | None


class Replaced(NamedTuple):
    """A file that another one has replaced at a time, in seconds since 1970."""

    path: str
    at: float


class Start(NamedTuple):
    """Where the log starts since retention deleted what was before.

    It is the first segment and slot that it has; `path`: the object with the first offsets of keys.
    """

    segment: int = 0
    slot: int = 0
    path: str | None = None


class Manifest(NamedTuple):
    """What the register `table` holds. `rest`: see `record`."""

    epoch: int = 0
    version: int = 0
    files: tuple[Merged, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    start: Start = Start()
    rest: Mapping[str, Json] = {}

    @property
    def value(self) -> dict[str, Json]:
        """As the register holds it."""
        return {
            **self.rest,
            "format": LOG_FORMAT,
            "epoch": self.epoch,
            "version": self.version,
            "files": [[*file[:-1], file.keys and [*file.keys]] for file in self.files],
            "replaced": [[*each] for each in self.replaced],
            "start": [*self.start],
        }

    @property
    def trimmed(self) -> bool:
        """Whether a key was trimmed: then the path of `start` must be asked before records are read."""
        return self.rest.get("trimmed") is True

    @property
    def sealed(self) -> int:
        """The first segment of the log that is in no merged file."""
        return self.files[-1].last + 1 if self.files else self.start.segment

    def with_merged(self, old: Sequence[Merged], new: Merged, at: float) -> "Manifest":
        """The manifest with a file in place of consecutive ones, or of runs after its last file."""
        files = [file for file in self.files if file not in old]
        files.append(new)
        files.sort(key=lambda file: file.first)
        replaced = (*self.replaced, *(Replaced(file.path, at) for file in old))
        return self._replace(files=tuple(files), replaced=replaced)

    def without(
        self, dropped: Sequence[Merged], start: Start, at: float, trimmed: bool
    ) -> "Manifest":
        """The manifest after the oldest files, and runs, have left the log, which starts there now."""
        old = [file.path for file in dropped] + ([self.start.path] if self.start.path else [])
        replaced = (*self.replaced, *(Replaced(path, at) for path in old))
        files = self.files[len(dropped) :]
        rest = {**self.rest, "trimmed": True} if trimmed else self.rest
        return self._replace(files=files, replaced=replaced, start=start, rest=rest)

    def file_of(self, segment: int) -> Merged | None:
        """The file that holds a segment."""
        return next((file for file in self.files if file.first <= segment <= file.last), None)


def manifest_of(value: Json) -> Manifest:
    """The manifest in a register's value. Raises `Misfit` for what this program does not write."""
    manifest = _manifest_of(value)
    _require_whole(manifest)
    return manifest


def _is_path(path: str, *folders: str) -> bool:
    """Whether a log can have given this path to a file of one of these folders. Raises `Misfit` if not."""
    if is_file(path) and path.partition("/")[0] in folders:
        return True
    raise Misfit(f"no path of a file in {' or '.join(folders)}: {brief(path)}")


KNOWN[Merged] = row(Merged, lambda file: _is_path(file.path, "merged"))
KNOWN[Replaced] = row(Replaced, lambda file: _is_path(file.path, *FILE_FOLDERS))
KNOWN[Start] = row(Start, lambda start: start.path is None or _is_path(start.path, "starts"))
_manifest_of = record(Manifest, form=FORMATS)


def _require_whole(manifest: Manifest) -> None:
    """Raises `Misfit` when files leave a gap or overlap, or what is needed counts as replaced."""
    at = manifest.start.segment, manifest.start.slot
    for file in manifest.files:
        if (file.first, file.base) != at or not (file.first <= file.last and file.base < file.end):
            raise Misfit(f"a file of several runs does not follow segment and slot {at}: {file}")
        at = file.last + 1, file.end
    needed = {file.path for file in manifest.files} | {manifest.start.path}
    for path, _ in manifest.replaced:
        span = span_of_run(path)
        if path in needed or (span and span[1] >= manifest.sealed):
            raise Misfit(f"a file that is needed counts as replaced: {path}")


async def read_manifest(store: Store) -> tuple[Manifest, Version | None]:
    """The manifest, and the version of its object, None when there is none yet. Raises `LogError`.

    What was replaced last was so when the object was written, where the store says it, and not before: whoever
    replaced it may have stood still since it took the time.
    """
    found = await read_value(store, TABLE, manifest_of)
    if found is None:
        return Manifest(), None
    replaced = found.value.replaced
    known, newest = found.modified or 0.0, replaced[-1].at if replaced else 0.0
    replaced = tuple(
        each._replace(at=max(each.at, known)) if each.at == newest else each for each in replaced
    )
    return found.value._replace(replaced=replaced), found.version


async def replace_manifest(store: Store, new: Manifest, version: Version | None) -> bool:
    """Put a new manifest in place of the one that has this version; whether nobody was there first.

    Raises `Definite`; `Indefinite` when it may have been replaced.
    """
    value = canonical(new._replace(version=new.version + 1).value)
    try:
        return await replaced(store, TABLE, value, version) is not None
    except StoreError as error:
        raise Indefinite(f"the list of files may have been replaced or not: {error}") from error


class Levels(NamedTuple):
    """How files are merged.

    With a larger `fan` a record is written less often, and a merge takes more memory: a row group of each
    file.
    """

    fan: int = 16
    large_bytes: int = 32 << 20
    top_bytes: int = 128 << 20


def next_merge(manifest: Manifest, runs: Sequence[Merged], levels: Levels) -> list[Merged]:
    """The files to merge next, oldest first; an empty list: none.

    `runs`: those that come after the files of the manifest, as files of level 0.
    """
    files = [*manifest.files, *runs]
    windows = (_window(files[start : start + levels.fan], levels) for start in range(len(files)))
    return next(filter(None, windows), [])


def _window(files: Sequence[Merged], levels: Levels) -> list[Merged]:
    """The first files, if they are of a level and enough to be merged."""
    alike = [
        *takewhile(
            lambda file: file.level == files[0].level and file.bytes < levels.large_bytes, files
        )
    ]
    for count, size in enumerate(accumulate(file.bytes for file in alike), 1):
        if count == levels.fan or (count > 1 and size >= levels.top_bytes):
            return alike[:count]
    return []
