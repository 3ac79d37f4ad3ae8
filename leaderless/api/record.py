"""What a log gives to programs: a record, what a look at some keys finds, and how the log is."""

from typing import Any, NamedTuple


class Record(NamedTuple):
    """One value of the log, at its offset in its key.

    `value` is JSON or `bytes`, as it was appended. Its type is `Any`, for it is what other programs wrote.
    """

    key: str
    offset: int
    value: Any


class Looked(NamedTuple):
    """What a look at some keys found.

    `records`: of each key from the first one at or after the offset that was asked for, without a gap.
    `earliest`: the first offset that is left, of keys of which a retention has deleted what was asked for. When
    records were found, keys without records are missing there: a look that finds none tells of all.
    """

    records: dict[str, list[Record]]
    earliest: dict[str, int]


class Status(NamedTuple):
    """What `Log.status` tells.

    `url`: of the store; `state`: "open" or "fenced"; `epoch`: of the fence; `batches`: in the log;
    `segments`: sealed so far, of which those below `compacted` are in runs; `keys`: the next offset of each.
    """

    url: str
    state: str
    epoch: int
    batches: int
    segments: int
    compacted: int
    keys: dict[str, int]
