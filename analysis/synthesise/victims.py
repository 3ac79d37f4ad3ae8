"""A key in which an anomaly is planted: small, so that plain Python can rewrite what happened to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

CHUNK = 8  # messages that are polled at once
_WAIT_PAIRS = 2

Pair = tuple[int, int]  # offset, message


@dataclass(frozen=True)
class Send:
    """The send of one message: number of the operation, its worker and its pair of rounds."""

    operation: int
    worker: int
    pair: int


@dataclass(frozen=True)
class Told:
    """What an operation is instead of an acknowledged send of one message."""

    f: str
    outcome: str
    invoked: str  # JSON
    completed: str


@dataclass
class Victim:
    """What happened to one key: message m (from 1) was sent to offset m - 1 by `sends[m - 1]`.

    Its readers poll it a chunk at a time, after all of the chunk was sent: `runs[reader][chunk]`.
    """

    key: str
    sends: Sequence[Send]
    chunk: int = CHUNK
    runs: list[list[list[Pair]]] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)  # in which each chunk is polled
    told: dict[int, Told] = field(default_factory=dict)  # by operation

    def __post_init__(self) -> None:
        for send, place in zip(self.sends, range(len(self.sends)), strict=True):
            self.told[send.operation] = sent(self.key, (place, place + 1))
        self.set_chunk(self.chunk)

    def set_chunk(self, chunk: int) -> None:
        """Have `chunk` messages polled at once."""
        log = [(place, place + 1) for place in range(len(self.sends))]
        chunks = [log[start : start + chunk] for start in range(0, len(log), chunk)]
        self.pairs = []
        for each in chunks:
            sent_in = self.sends[each[-1][0]].pair
            before = self.pairs[-1] if self.pairs else -1
            self.pairs.append(max(sent_in + _WAIT_PAIRS, before + 1))
        self.runs = [[list(each) for each in chunks] for _ in range(2)]

    def tell(self, message: int, told: Told) -> None:
        """Change what the operation that sent `message` was."""
        self.told[self.sends[message - 1].operation] = told


def sent(key: str, *pairs: Pair) -> Told:
    """Acknowledged sends; a transaction if there are several."""
    return told_as(key, pairs, None, "send" if len(pairs) == 1 else "txn")


def told_as(key: str, pairs: Sequence[Pair], polled: Pair | None, f: str = "txn") -> Told:
    """A transaction that sent `pairs` and polled one."""
    invoked = [["send", key, message] for _, message in pairs]
    completed = [["send", key, list(pair)] for pair in pairs]
    polls = [["poll", {key: [list(polled)]}]] if polled else []
    asked = invoked + [["poll"]] * len(polls)
    return Told(f, "ok", _json(asked), _json(completed + polls))


def failed(key: str, message: int) -> Told:
    """A send that certainly did not happen."""
    value = _json([["send", key, message]])
    return Told("send", "fail", value, value)


NOTHING = Told("poll", "ok", '[["poll"]]', '[["poll",{}]]')


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
