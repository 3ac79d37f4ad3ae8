"""How each type of anomaly is planted, one in a key.

It may bring others with it, as a lost write leaves a gap in what is polled. These types cannot be planted:
`empty-transaction-graph` is of a whole history, `unreplicated` of a strict check, and the `G0` family needs
edges that are looked for only on request.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

from analysis.synthesise.victims import NOTHING, Victim, failed, sent, told_as

LEAST_MESSAGES = 40  # of a victim
_TARGET = 20  # a message in the middle of the third chunk
_THIRD = 2
_PAIR = _TARGET - 1, _TARGET
_NEXT = _TARGET, _TARGET + 1


# Changes a victim; returns False when that one does not lend itself.
Plant = Callable[[Victim], bool | None]


def _lost_write(victim: Victim) -> None:
    for runs in victim.runs:
        runs[_THIRD].remove(_PAIR)


def _unseen(victim: Victim) -> None:
    for runs in victim.runs:
        runs[-1].pop()


def _duplicate(victim: Victim) -> None:
    for runs in victim.runs:
        runs[-1].append((len(victim.sends), _TARGET))


def _inconsistent_offsets(victim: Victim) -> None:
    run = victim.runs[0][_THIRD]
    run[run.index(_PAIR)] = (_PAIR[0], _NEXT[1])


def _aborted_read(victim: Victim) -> None:
    victim.tell(_TARGET, failed(victim.key, _TARGET))


def _no_writer(victim: Victim) -> None:
    for runs in victim.runs:
        runs[-1].append((len(victim.sends), 1_000_000_000))


def _precommitted_read(victim: Victim) -> None:
    victim.tell(_TARGET, told_as(victim.key, [_PAIR], _PAIR))


def _poll_skip(victim: Victim) -> None:
    victim.runs[0][_THIRD].clear()


def _int_poll_skip(victim: Victim) -> None:
    victim.runs[0][_THIRD].remove(_PAIR)


def _nonmonotonic_poll(victim: Victim) -> None:
    runs = victim.runs[0]
    runs[_THIRD], runs[_THIRD + 1] = runs[_THIRD + 1], runs[_THIRD]


def _int_nonmonotonic_poll(victim: Victim) -> None:
    run = victim.runs[0][_THIRD]
    place = run.index(_PAIR)
    run[place], run[place + 1] = run[place + 1], run[place]


def _nonmonotonic_send(victim: Victim) -> bool:
    """Two messages of one worker in the wrong order, polled after both were sent."""
    by_worker: dict[int, int] = {}
    for message, send in enumerate(victim.sends, 1):
        earlier = by_worker.setdefault(send.worker, message)
        if earlier != message:
            break
    else:
        return False
    victim.set_chunk(len(victim.sends))
    first, second = (earlier - 1, message), (message - 1, earlier)
    victim.tell(message, sent(victim.key, first))
    victim.tell(earlier, sent(victim.key, second))
    for runs in victim.runs:
        runs[0][first[0]], runs[0][second[0]] = first, second
    return True


def _int_send_skip(victim: Victim) -> None:
    victim.tell(_TARGET - 1, NOTHING)
    victim.tell(_TARGET + 1, sent(victim.key, (_TARGET - 2, _TARGET - 1), _NEXT))


def _int_nonmonotonic_send(victim: Victim) -> None:
    victim.tell(_TARGET - 1, NOTHING)
    victim.tell(_TARGET + 1, sent(victim.key, _NEXT, (_TARGET - 2, _TARGET - 1)))


def _cycle(victim: Victim) -> None:
    victim.tell(_TARGET, told_as(victim.key, [_PAIR], _NEXT))
    victim.tell(_TARGET + 1, told_as(victim.key, [_NEXT], _PAIR))


def _realtime_cycle(victim: Victim) -> bool:
    """A chunk is polled with the one before it, and in part before it was sent."""
    waits = (after - before > 4 for before, after in pairwise(victim.pairs))
    chunk = next((number for number, waited in enumerate(waits, 1) if waited), None)
    if chunk is None:
        return False
    for runs in victim.runs:
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
