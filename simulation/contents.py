"""What a log on a bucket holds, said naively from its own records; what files and readers owe to that.

| law | what must hold |
|---|---|
| `FilesHoldTheLog` | a file of runs that is named holds the records of its slots, and no other |
| `FilesKept` | no file is deleted that the list of files names, or whose run no other file holds |
| `OldListReadable` | a file stays for the retention of readers after it was replaced |
| `TrimmedByPolicy` | a retention deletes what its policy allows, or was trimmed: nothing that a group needs |
| `StartsKnown` | the log says of each key how many records retentions and trims have deleted |
| `SnapshotExact` | a snapshot has every record below its version, and no other; it is no older than its begin |
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import orjson

from leaderless.core.coordination import Json
from leaderless.core.messages import Entry
from leaderless.store.files import MemoryFiles
from leaderless.store.names import is_data, is_file, span_of_run
from leaderless.store.values import reference_in
from leaderless.table.manifest import TABLE, Manifest, manifest_of
from simulation.oracle import raise_to, require

RETENTION_S = 1000.0  # of a vacuum
Record = tuple[str, int, Json]  # key, offset, message


class Contents:
    """The records of a log by their slots, and the files that it needs.

    `value_of` gives what an object holds, `clock_s` the time of the bucket. `trimmed`: of each key the first
    offset that retentions have left; `asked`: the highest one that a trim was asked for. `policy`, a
    `leaderless.table.retention.Policy`: of all retentions;
    `processed`: of each key the last offset that a group has processed.
    """

    def __init__(
        self, value_of: Callable[[str], bytes | None], clock_s: Callable[[], float]
    ) -> None:
        self._value_of, self._clock_s = value_of, clock_s
        self._slots: list[tuple[float, list[Record]]] = []  # the time of its records, and what
        self._manifest = Manifest()
        self._left: dict[str, float] = {}  # files that the list has let go of, and when
        self._spans: dict[str, range] = {}  # the slots of merged files
        self._referred: dict[str, int] = {}  # large values, and the slot that refers to each
        # Of each run, by its first segment, the first slot and the bytes.
        self._runs: dict[int, tuple[int, int]] = {}
        self.trimmed: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        self.writers: dict[str, list[Json]] = {}  # the messages of each writer
        self.seen = Counter[str]()  # what has happened to it as a table
        self.policy: Any = None
        self.processed: Mapping[str, int] = {}

    @property
    def end(self) -> int:
        """How many batches the log has had."""
        return len(self._slots)

    def changed(self, key: str, value: bytes | None, added: Iterable[Entry]) -> None:
        """An object holds `value`, None: it was deleted; the log has these entries more."""
        for entry in added:
            for messages in (messages for _, messages in entry.appends.values()):
                self._referred |= {r.key: self.end for r in map(reference_in, messages) if r}
            records = [
                (name, offset, message)
                for name, (first, messages) in entry.appends.items()
                for offset, message in enumerate(messages, first)
            ]
            self._slots.append(
                (self._clock_s() if entry.time is None else entry.time / 1000, records)
            )
            self.writers.setdefault(entry.writer, []).extend(each[2] for each in records)
        if key == TABLE and value is not None:
            self._list_changed(manifest_of(orjson.loads(value)))
        elif is_data(key) and value is None:
            self._data_deleted(key)
        elif is_file(key):
            if value is None:
                self._file_deleted(key)
            elif span := span_of_run(key):
                slots = reader_of(value).spans[2:]
                self._runs[span[0]] = slots[0], len(value)
                self._require_held(key, *slots)

    def require_snapshot(self, start: int, version: int, found: Iterable[Record]) -> None:
        """A reader saw these records as those of the slots from `start` to `version`."""
        text = _difference(found, self._records(start, version))
        require(not text, "SnapshotExact", f"slots {start} to {version - 1}: {text}")
        self.seen["snapshots"] += 1

    def _records(self, base: int, end: int) -> list[Record]:
        return [record for _, records in self._slots[base:end] for record in records]

    # ------------------------------------------------------------ files

    def _list_changed(self, new: Manifest) -> None:
        old, self._manifest = self._manifest, new
        for path, _ in new.replaced:
            self._left.setdefault(path, self._clock_s())
        for file in new.files:
            if file not in old.files:
                self.seen["merges"] += 1
                self._spans[file.path] = range(file.base, file.end)
                self._require_held(file.path, file.base, file.end)
        if new.start != old.start:
            self.seen["retentions"] += 1
            self._require_allowed(old, new)

    def _require_held(self, path: str, base: int, end: int) -> None:
        value = self._value_of(path)
        require(value is not None, "FilesKept", f"{path} is named, and is not there")
        text = _difference(records_in(value or b""), self._records(base, end))
        require(not text, "FilesHoldTheLog", f"{path}: {text}")

    def _file_deleted(self, path: str) -> None:
        self.seen["deletions of files"] += 1
        span = span_of_run(path)
        needed = {*(file.path for file in self._manifest.files), self._manifest.start.path}
        is_left = span is None or span[1] < self._manifest.sealed
        require(is_left and path not in needed, "FilesKept", f"{path} was deleted, and is needed")
        age_s = self._clock_s() - self._left.pop(path, 0.0)
        text = f"{path} was deleted {age_s:.1f} s after it was replaced"
        require(age_s > RETENTION_S, "OldListReadable", text)
        self._spans.pop(path, None)

    def _data_deleted(self, key: str) -> None:
        slot = self._referred.get(key)
        holders = [path for path, slots in self._spans.items() if slot in slots]
        require(not holders, "OldListReadable", f"{key} was deleted, and {holders} refer to it")

    def has_plan(self, key: str) -> bool:
        """Whether a register of a sink has a plan."""
        return "parts" in orjson.loads(self._value_of(key) or b"{}")

    # ------------------------------------------------------------ retention

    def _require_allowed(self, old: Manifest, new: Manifest) -> None:
        slots = self._slots[old.start.slot : new.start.slot]
        records = [record for _, some in slots for record in some]
        told = orjson.loads(self._value_of(new.start.path or "") or b"null")
        least, most = dict(self.trimmed), dict(self.asked)
        raise_to(least, {key: offset + 1 for key, offset, _ in records})
        raise_to(most, least)
        known = least.keys() <= told.keys() <= most.keys() and all(
            least.get(key, 0) <= at <= most[key] for key, at in told.items()
        )
        require(known, "StartsKnown", f"{told}, and not {least} to {most}")
        self.trimmed |= told
        policy = self.policy
        done = {key: at + 1 for key, at in self.processed.items()} if policy.processed else {}
        raise_to(done, self.asked)
        needed = [
            slot
            for slot, (_, some) in enumerate(slots, old.start.slot)
            if any(offset >= done.get(key, 0) for key, offset, _ in some)
        ]
        last = max(needed, default=-1)  # each file that is older was to leave by itself
        left = sum(file.bytes for file in old.files if file.base > last)
        left += sum(
            size
            for first, (base, size) in self._runs.items()
            if first >= old.sealed and base > last
        )
        too_new = self._clock_s() - (policy.age_s or 0)
        allowed = (
            not needed
            or (policy.bytes is not None and left >= policy.bytes)
            or (policy.age_s is not None and self._slots[last][0] < too_new)
        )
        text = f"slot {last} leaves by {policy}; {left} bytes are newer, {done}"
        require(allowed, "TrimmedByPolicy", text)


def reader_of(content: bytes) -> Any:
    """A reader of a Parquet file of the log."""
    from leaderless.table.parquet import Reader

    files = MemoryFiles()
    files.put("file", content)
    return Reader(files, "file")


def records_in(content: bytes) -> list[Record]:
    """The records of a Parquet file of the log."""
    from leaderless.table.schema import rows_in

    return [row[:3] for row in rows_in(reader_of(content).read())]


def run_in(content: bytes) -> Json:
    """The run in a file, as a register would hold it."""
    reader = reader_of(content)
    keys: dict[str, list[Any]] = {}
    for key, offset, message in records_in(content):
        keys.setdefault(key, [offset, []])[1].append(message)
    told = {name: reader.run[name] for name in ("base", "end", "commits", "writers")}
    return {**told, "keys": keys}


def _difference(found: Iterable[Record], wanted: Iterable[Record]) -> str:
    """In which records they differ; an empty text: in none."""
    mine, its = (
        [orjson.dumps(each) for each in sorted(some, key=itemgetter(0, 1))]
        for some in (found, wanted)
    )
    if mine == its:
        return ""
    more, less = ([each for each in a if each not in b] for a, b in ((mine, its), (its, mine)))
    return f"{len(mine)} records, not {len(its)}; too much {more[:3]}, missing {less[:3]}"
