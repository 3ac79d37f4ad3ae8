"""What a live log was like, window by window: the file that `python -m analysis.live` keeps, and pages read.

    STORE/live/NAME/live.json      {url, window_ns, updated_s, windows: [...]}
    STORE/live/NAME/checkpoint/    where the stream is; Spark's

A *window* has the records that were appended in it. Windows start at multiples of their width. The log says
of a sealed record when its segment was written, `appended_at`; of a newer one it says nothing, and the time at
which the stream learnt of it stands in. Fields of a window:

- `window_start_ns`: since 1970.
- `records`, and of these `timed`: those whose `appended_at` the log says.
- `latency_ns_p50`, `_p90`, `_p99`, `_max`: of the timed records, the time from `appended_at` until the stream
  learnt of the record (`runs.operations` defines the quantiles); null without any. The append itself was at
  `appended_at` or before, so the latency of a record is at least this. The largest is the *realtime lag* of the
  stream (`runs.lag`): so long it did not know of a record that was there.

Both clocks count: that of the store, and that of the machine of the stream.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from runs.files import is_own, own
from runs.writing import write_whole

FOLDER, FILE, CHECKPOINT = "live", "live.json", "checkpoint"
LATENCIES = ("latency_ns_p50", "latency_ns_p90", "latency_ns_p99", "latency_ns_max")
COLUMNS = ("window_start_ns", "records", "timed", *LATENCIES)

Window = dict[str, Any]


@dataclass(frozen=True)
class Live:
    """The windows of a log in their order, and when they were written last, in seconds since 1970."""

    url: str
    window_ns: int
    updated_s: float
    windows: tuple[Window, ...]

    def with_windows(self, changed: Iterable[Mapping[str, Any]], now_s: float) -> "Live":
        """With windows that replace those of the same start."""
        known = {window["window_start_ns"]: window for window in self.windows}
        known |= {row["window_start_ns"]: {name: row[name] for name in COLUMNS} for row in changed}
        windows = tuple(known[start] for start in sorted(known))
        return replace(self, updated_s=now_s, windows=windows)

    @property
    def records(self) -> int:
        """Count the records of all windows."""
        return sum(window["records"] for window in self.windows)

    def last(self, count: int) -> "Live":
        """The last windows alone: those that begin in the last `count` widths."""
        if not self.windows:
            return self
        first = self.windows[-1]["window_start_ns"] - (count - 1) * self.window_ns
        windows = tuple(each for each in self.windows if each["window_start_ns"] >= first)
        return replace(self, windows=windows)


def keep_live(folder: Path, live: Live) -> None:
    """Write the file, whole or not at all. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FILE, [orjson.dumps(live).decode()])


def read_live(folder: Path) -> Live | None:
    """What the file of a folder says; None when it is missing, or is no such file."""
    try:
        fields = orjson.loads(own(folder, FILE).read_bytes())
        windows = tuple({name: row[name] for name in COLUMNS} for row in fields["windows"])
        return Live(fields["url"], fields["window_ns"], fields["updated_s"], windows)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def live_names(store: Path) -> list[str]:
    """The names below `STORE/live`, those that changed last first."""
    files = [
        file
        for file in store.glob(f"{FOLDER}/*/{FILE}")
        if is_own(store, f"{FOLDER}/{file.parent.name}/{FILE}")
    ]
    newest = sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)
    return [file.parent.name for file in newest]
