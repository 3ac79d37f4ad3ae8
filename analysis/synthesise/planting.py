"""How each type of anomaly is planted: plain Python rewrites the history of one key.

An anomaly may bring others with it: a lost write leaves a gap in what is polled. Some types cannot be
planted. `empty-transaction-graph` is of a whole history, `unreplicated` of a strict check, and the `G0`
family needs edges that are looked for only on request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

LEAST_MESSAGES = 40  # of a key in which an anomaly is planted
_CHUNK = 8  # messages that are polled at once
_WAIT_PAIRS = 2
_TARGET = 20  # a message in the middle of the third chunk
_THIRD = 2

Pair = tuple[int, int]  # offset, message
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
    runs: list[list[list[Pair]]] = field(default_factory=list)
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


def _transaction(key: str, sent: Sequence[Pair], polled: Pair | None = None) -> Content:
    """An acknowledged transaction that sends pairs, and polls one if there is one to poll."""
    f = "send" if len(sent) == 1 and not polled else "txn"
    polls = [["poll", {key: [polled]}]] if polled else []
    invoked = [*(["send", key, message] for _, message in sent), *([["poll"]] if polled else [])]
    completed = [*(["send", key, pair] for pair in sent), *polls]
    return Content(f, "ok", compact(invoked), compact(completed))


def compact(value: object) -> str:
    """JSON without blanks, as the bench writes it."""
    return json.dumps(value, separators=(",", ":"))


def _lost_write(history: KeyHistory) -> None:
    for runs in history.runs:
        runs[_THIRD].remove(_PAIR)


def _unseen(history: KeyHistory) -> None:
    for runs in history.runs:
        runs[-1].pop()


def _duplicate(history: KeyHistory) -> None:
    for runs in history.runs:
        runs[-1].append((len(history.sends), _TARGET))


def _inconsistent_offsets(history: KeyHistory) -> None:
    run = history.runs[0][_THIRD]
    run[run.index(_PAIR)] = (_PAIR[0], _NEXT[1])


def _aborted_read(history: KeyHistory) -> None:
    value = compact([["send", history.key, _TARGET]])
    history.rewrite(_TARGET, Content("send", "fail", value, value))


def _no_writer(history: KeyHistory) -> None:
    for runs in history.runs:
        runs[-1].append((len(history.sends), 1_000_000_000))


def _precommitted_read(history: KeyHistory) -> None:
    history.rewrite(_TARGET, _transaction(history.key, [_PAIR], _PAIR))


def _poll_skip(history: KeyHistory) -> None:
    history.runs[0][_THIRD].clear()


def _int_poll_skip(history: KeyHistory) -> None:
    history.runs[0][_THIRD].remove(_PAIR)


def _nonmonotonic_poll(history: KeyHistory) -> None:
    runs = history.runs[0]
    runs[_THIRD], runs[_THIRD + 1] = runs[_THIRD + 1], runs[_THIRD]


def _int_nonmonotonic_poll(history: KeyHistory) -> None:
    run = history.runs[0][_THIRD]
    place = run.index(_PAIR)
    run[place], run[place + 1] = run[place + 1], run[place]


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


def _int_send_skip(history: KeyHistory) -> None:
    history.rewrite(_TARGET - 1, _EMPTY_POLL)
    history.rewrite(_TARGET + 1, _transaction(history.key, [_BEFORE, _NEXT]))


def _int_nonmonotonic_send(history: KeyHistory) -> None:
    history.rewrite(_TARGET - 1, _EMPTY_POLL)
    history.rewrite(_TARGET + 1, _transaction(history.key, [_NEXT, _BEFORE]))


def _cycle(history: KeyHistory) -> None:
    history.rewrite(_TARGET, _transaction(history.key, [_PAIR], _NEXT))
    history.rewrite(_TARGET + 1, _transaction(history.key, [_NEXT], _PAIR))


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
    "lost-write": _lost_write,
    "unseen": _unseen,
    "duplicate": _duplicate,
    "inconsistent-offsets": _inconsistent_offsets,
    "G1a": _aborted_read,
    "no-writer-of-value": _no_writer,
    "precommitted-read": _precommitted_read,
    "poll-skip": _poll_skip,
    "nonmonotonic-poll": _nonmonotonic_poll,
    "nonmonotonic-send": _nonmonotonic_send,
    "int-poll-skip": _int_poll_skip,
    "int-nonmonotonic-poll": _int_nonmonotonic_poll,
    "int-send-skip": _int_send_skip,
    "int-nonmonotonic-send": _int_nonmonotonic_send,
    "G1c": _cycle,
    "G1c-realtime": _realtime_cycle,
}
