"""Which files are merged next: levels, as in a log-structured merge tree (O'Neil et al., 1996).

A run is a file of level 0. `fan` consecutive files of a level become one of the next level, or fewer that
have `top_bytes` together. A file of `large_bytes` is merged no more. So a record is written once for each
level below that size: 1 + log(large_bytes / size of a run) / log(fan) times, rounded up.
"""

from collections.abc import Sequence
from typing import NamedTuple

from leaderless.table.manifest import Manifest, Merged


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
    window: list[Merged] = []
    size = 0
    for file in files:
        if file.level != files[0].level or file.bytes >= levels.large_bytes:
            break
        window.append(file)
        size += file.bytes
        if len(window) == levels.fan or (len(window) > 1 and size >= levels.top_bytes):
            return window
    return []
