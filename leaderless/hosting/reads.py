"""What all readers of a log have: records, what a look at some keys found, and pauses between looks."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from leaderless.errors import Unfit

PAUSE_S = 0.05  # the first one between two looks


class Record(NamedTuple):
    """One value of the log, at its offset in its key.

    `value` is JSON or `bytes`, as it was appended: what other programs wrote. `time_ms`: when it was committed,
    in milliseconds since 1970 by the clock of the process that did, and never below that of an earlier record;
    from before `leaderless upgrade` None or, in a Parquet file, when the store took it. `headers`: what was
    appended beside the value.
    """

    key: str
    offset: int
    value: Any
    time_ms: int | None = None
    headers: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self[:3] == other[:3]

    def __hash__(self) -> int:
        return hash(self[:3])


class Looked(NamedTuple):
    """What a look at some keys found.

    `records`: of each key from the first one at or after the offset that was asked for, without a gap.
    `earliest`: the first offset that is left, of keys of which a retention has deleted what was asked for. When
    records were found, keys without records are missing there: a look that finds none tells of all.
    `closed`: keys that end before the offset that was asked for, and for ever.
    """

    records: dict[str, list[Record]]
    earliest: dict[str, int]
    closed: Collection[str] = ()


class Readable(Protocol):
    """What a tail and a consumer need of a log (`leaderless.api.log.Log`)."""

    async def keys(self) -> dict[str, int]:
        """See `Log.keys`."""

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        """See `Log.look`."""


class Pauses:
    """The pauses between looks at a log: they double while there is no news, up to `latency_s` seconds.

    Raises `Unfit`.
    """

    def __init__(self, latency_s: float) -> None:
        if not latency_s > 0:
            raise Unfit(f"latency_s must be above 0 seconds, got {latency_s:g}")
        self._latency_s = latency_s
        self._next_s = PAUSE_S

    def next_s(self, news: bool) -> float:
        """The pause after a look, in seconds; `news`: what it showed."""
        pause_s = 0.0 if news else min(self._next_s, self._latency_s)
        self._next_s = PAUSE_S if news else 2 * pause_s
        return pause_s
