"""Anomalies, planted in what happened to one key, by plain Python.

An anomaly may bring others with it: a lost write leaves a gap in what is polled. Some types cannot be planted.
`empty-transaction-graph` is of a whole history, `unreplicated` of a strict check, and the `G0` family needs
edges that are looked for only on request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from runs.history import json_text

LEAST_MESSAGES = 40  # of a key in which an anomaly is planted
_CHUNK = 8  # messages that are polled at once
_WAIT_PAIRS = 2
_TARGET = 20  # a message in the middle of the third chunk
_THIRD = 2

OffsetMessage = tuple[int, int]  # offset, message
_BEFORE = _TARGET - 2, _TARGET - 1
_PAIR = _TARGET - 1, _TARGET
_NEXT = _TARGET, _TARGET + 1


class Send(NamedTuple):
    """The send of one message: number of the operation, its worker and its pair of rounds."""

    operation: int
    worker: int
    pair: int


class Content(NamedTuple):
    """What an operation does: its function, its outcome, and its values as JSON."""

    f: str
    outcome: str
    invoked: str
    completed: str


@dataclass
class KeyHistory:
    """What happened to one key: message m (from 1) was sent to offset m - 1 by `sends[m - 1]`.

    Its readers poll it a chunk at a time, after all of the chunk was sent: `runs[reader][chunk]`.
    """

    key: str
    sends: Sequence[Send]
    runs: list[list[list[OffsetMessage]]] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)  # in which each chunk is polled
    contents: dict[int, Content] = field(default_factory=dict)  # of the operations that send

    def __post_init__(self) -> None:
        for offset in range(len(self.sends)):
            self.rewrite(offset + 1, _transaction(self.key, [(offset, offset + 1)]))
        self.poll_in_chunks_of(_CHUNK)

    def poll_in_chunks_of(self, size: int) -> None:
        """Have `size` messages polled at once."""
        log = [(offset, offset + 1) for offset in range(len(self.sends))]
        chunks = [log[start : start + size] for start in range(0, len(log), size)]
        self.pairs = []
        for chunk in chunks:
            sent_in = self.sends[chunk[-1][0]].pair
            before = self.pairs[-1] if self.pairs else -1
            self.pairs.append(max(sent_in + _WAIT_PAIRS, before + 1))
        self.runs = [[list(chunk) for chunk in chunks] for _ in range(2)]

    def rewrite(self, message: int, content: Content) -> None:
        """Replace what the operation that sent `message` does."""
        self.contents[self.sends[message - 1].operation] = content


# Changes the history of a key. Returns False when that history does not lend itself to the anomaly.
Plant = Callable[[KeyHistory], bool | None]

_EMPTY_POLL = Content("poll", "ok", '[["poll"]]', '[["poll",{}]]')


def _transaction(
    key: str, sent: Sequence[OffsetMessage], polled: OffsetMessage | None = None
) -> Content:
    """An acknowledged transaction that sends pairs, and polls one if there is one to poll."""
    f = "send" if len(sent) == 1 and not polled else "txn"
    polls = [["poll", {key: [polled]}]] if polled else []
    invoked = [*(["send", key, message] for _, message in sent), *([["poll"]] if polled else [])]
    completed = [*(["send", key, pair] for pair in sent), *polls]
    return Content(f, "ok", json_text(invoked), json_text(completed))


def _in_polls(edit: Callable[[list[list[OffsetMessage]], int], object], readers: int = 2) -> Plant:
    """Change what the first readers poll: their chunks; `edit` is also told the next free offset."""

    def plant(history: KeyHistory) -> None:
        for runs in history.runs[:readers]:
            edit(runs, len(history.sends))

    return plant


def _in_sends(contents: Callable[[str], Mapping[int, Content]]) -> Plant:
    """Change what the senders of some messages of a key do."""

    def plant(history: KeyHistory) -> None:
        for message, content in contents(history.key).items():
            history.rewrite(message, content)

    return plant


def _failed(key: str) -> Content:
    value = json_text([["send", key, _TARGET]])
    return Content("send", "fail", value, value)


def _replace(run: list[OffsetMessage], old: OffsetMessage, new: OffsetMessage) -> None:
    run[run.index(old)] = new


def _exchange(items: list[Any], place: int) -> None:
    items[place], items[place + 1] = items[place + 1], items[place]


def _nonmonotonic_send(history: KeyHistory) -> bool:
    """Two messages of one worker in the wrong order, polled after both were sent."""
    by_worker: dict[int, int] = {}
    for message, send in enumerate(history.sends, 1):
        earlier = by_worker.setdefault(send.worker, message)
        if earlier != message:
            break
    else:
        return False
    history.poll_in_chunks_of(len(history.sends))
    first, second = (earlier - 1, message), (message - 1, earlier)
    history.rewrite(message, _transaction(history.key, [first]))
    history.rewrite(earlier, _transaction(history.key, [second]))
    for runs in history.runs:
        runs[0][first[0]], runs[0][second[0]] = first, second
    return True


def _realtime_cycle(history: KeyHistory) -> bool:
    """A chunk is polled with the one before it, and in part before it was sent."""
    waits = (after - before > 4 for before, after in pairwise(history.pairs))
    chunk = next((number for number, waited in enumerate(waits, 1) if waited), None)
    if chunk is None:
        return False
    for runs in history.runs:
        runs[chunk - 1] += runs[chunk]
        runs[chunk] = []
    return True


ANOMALIES: Mapping[str, Plant] = {
    "lost-write": _in_polls(lambda runs, _: runs[_THIRD].remove(_PAIR)),
    "unseen": _in_polls(lambda runs, _: runs[-1].pop()),
    "duplicate": _in_polls(lambda runs, end: runs[-1].append((end, _TARGET))),
    "inconsistent-offsets": _in_polls(
        lambda runs, _: _replace(runs[_THIRD], _PAIR, (_PAIR[0], _NEXT[1])), 1
    ),
    "G1a": _in_sends(lambda key: {_TARGET: _failed(key)}),
    "no-writer-of-value": _in_polls(lambda runs, end: runs[-1].append((end, 1_000_000_000))),
    "precommitted-read": _in_sends(lambda key: {_TARGET: _transaction(key, [_PAIR], _PAIR)}),
    "poll-skip": _in_polls(lambda runs, _: runs[_THIRD].clear(), 1),
    "nonmonotonic-poll": _in_polls(lambda runs, _: _exchange(runs, _THIRD), 1),
    "nonmonotonic-send": _nonmonotonic_send,
    "int-poll-skip": _in_polls(lambda runs, _: runs[_THIRD].remove(_PAIR), 1),
    "int-nonmonotonic-poll": _in_polls(
        lambda runs, _: _exchange(runs[_THIRD], runs[_THIRD].index(_PAIR)), 1
    ),
    "int-send-skip": _in_sends(
        lambda key: {
            _TARGET - 1: _EMPTY_POLL,
            _TARGET + 1: _transaction(key, [_BEFORE, _NEXT]),
        }
    ),
    "int-nonmonotonic-send": _in_sends(
        lambda key: {
            _TARGET - 1: _EMPTY_POLL,
            _TARGET + 1: _transaction(key, [_NEXT, _BEFORE]),
        }
    ),
    "G1c": _in_sends(
        lambda key: {
            _TARGET: _transaction(key, [_PAIR], _NEXT),
            _TARGET + 1: _transaction(key, [_NEXT], _PAIR),
        }
    ),
    "G1c-realtime": _realtime_cycle,
}
