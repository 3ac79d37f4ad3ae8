"""What was computed of a run, kept until its files change: in `.cache` of the store.

A store that cannot be written to is shown all the same: then memory keeps the latest values.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from runs.store import Folder
from runs.writing import write_whole

VERSION = 4  # raise it when the same files would now give something else
_IN_MEMORY = 1000


class Cache:
    """Values that JSON can hold, by run and by what they are."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is made when the first value is kept; None keeps values in memory alone."""
        self._folder = folder
        self._memory: OrderedDict[tuple[str, str], tuple[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run: Folder, what: str) -> Any:
        """The value, or None if it is not there or the run's files changed since."""
        fingerprint = _fingerprint(run)
        with self._lock:
            known = self._memory.get((run.name, what))
        if known and known[0] == fingerprint:
            return known[1]
        try:
            kept = orjson.loads(self._file(run, what).read_bytes()) if self._folder else {}
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("fingerprint") != fingerprint:
            return None
        return kept.get("value")

    def get_or(self, run: Folder, what: str, compute: Callable[[], Any]) -> Any:
        """The value, computed and kept if it is not there."""
        value = self.get(run, what)
        if value is None:
            fingerprint = _fingerprint(run)  # taken before reading: a file may grow meanwhile
            value = compute()
            if not self._keep(run, what, fingerprint, value):
                self._remember(run, what, fingerprint, value)
        return value

    def _remember(self, run: Folder, what: str, fingerprint: str, value: Any) -> None:
        with self._lock:
            self._memory[run.name, what] = (fingerprint, value)
            self._memory.move_to_end((run.name, what))
            while len(self._memory) > _IN_MEMORY:
                self._memory.popitem(last=False)

    def _keep(self, run: Folder, what: str, fingerprint: str, value: Any) -> bool:
        """Write it to the folder; False if that cannot be done."""
        if self._folder is None:
            return False
        file = self._file(run, what)
        content = orjson.dumps({"fingerprint": fingerprint, "value": value}).decode()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, [content])
        except OSError:
            return False
        return True

    def _file(self, run: Folder, what: str) -> Path:
        assert self._folder is not None, "asked only where there is one"
        name = hashlib.sha256(run.name.encode()).hexdigest()[:24]
        return self._folder / f"{name}-{what}.json"


def _fingerprint(run: Folder) -> str:
    facts = f"{VERSION};{run.files.fingerprint()}"
    return hashlib.sha256(facts.encode()).hexdigest()[:16]
