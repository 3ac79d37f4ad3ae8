"""What kafka clients do, and how: sends, polls, assigns now and then, crashes, and at the end reading it all.

A client turns one operation into RPCs, and keeps the position of each assigned key. `assign` keeps the position
of keys it already had, otherwise takes the committed offset, otherwise 0. `poll` sends its positions, moves
each behind the highest offset returned, and when it got anything commits the highest polled offset of each key.
A definite error to the commit makes the whole poll fail after the positions have moved on, as in the original.
A reply that breaks the protocol (a missing, mistyped or unknown field) raises `MalformedReply`. [facts:
Maelstrom's workload/kafka.clj]

Facts from Jepsen's tests/kafka.clj and elle's txn.clj, as the contract gives them:

- a send or a poll with equal odds; with probability 1/64 an `assign` of the key just drawn goes
  before it;
- a third of the assigns also take every key that has sent but unpolled offsets;
- `key_count` keys are active, key i drawn twice as often as key i-1; the values of a key count up
  from 1,
  and a key that has had `max_writes_per_key` is replaced by a fresh one;
- a crash of some client every 30 s / concurrency on average.
"""

import math
from random import Random
from typing import Any, TypeGuard

from runs.history import Keyword, Op, keywords
from workloads.interface import Body, CrashClient, Draft, Steps, Turn, Wait
from workloads.mixes import Keys
from workloads.replies import INTEGER, Form, ask

SEND, POLL = Keyword("send"), Keyword("poll")
COMMITTED = "committed"  # of an assignment: what the node listed of its keys


def is_offset(value: Any) -> TypeGuard[int]:
    """Whether this is a place in a log: a whole number of 0 or more."""
    return type(value) is int and value >= 0


def _is_pair(pair: Any) -> bool:
    return type(pair) is list and len(pair) == 2 and is_offset(pair[0])


def _is_array(pairs: Any) -> bool:
    return type(pairs) is list and all(map(_is_pair, pairs))


_OFFSET = Form("an integer of 0 or more", is_offset)
_MESSAGES = Form(
    "an object, key to [[offset, message], ...]",
    lambda found: type(found) is dict and all(map(_is_array, found.values())),
    Form("an array", _is_array, Form("[offset, message] with an offset of 0 or more", _is_pair)),
)
# A committed offset may be negative: some nodes say -1 of a key without one, which the real tool takes for a
# position.
_POSITIONS = Form(
    "an object, key to offset",
    lambda found: type(found) is dict and all(type(each) is int for each in found.values()),
    INTEGER,
)


class KafkaClient:
    """Performs operations at one node; a fresh one has no positions."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._positions: dict[str, int] = {}  # assigned key -> offset to poll from

    def invoke(self, op: Op) -> Steps:
        match op.f:
            case "send":
                return self._send(op.value[0])
            case "poll":
                return self._poll()
            case "assign":
                return self._assign(op)
            case "crash":
                return _crash()
        raise ValueError(f"the kafka client knows no operation {op.f!r}")

    def _send(self, micro_op: list[Any]) -> Steps:
        name, key, message = micro_op
        reply = yield from ask(
            self._node, {"type": "send", "key": key, "msg": message}, offset=_OFFSET
        )
        return [[name, key, [reply["offset"], message]]]

    def _poll(self) -> Steps:
        messages = (
            yield from ask(self._node, {"type": "poll", "offsets": self._positions}, msgs=_MESSAGES)
        )["msgs"]
        # A request must not change while it is on its way: so a new dictionary replaces the positions.
        polled: dict[str, int] = {}
        positions = dict(self._positions)
        for key, pairs in messages.items():
            highest = max((pair[0] for pair in pairs), default=-1)
            positions[key] = max(positions.get(key, highest + 1), highest + 1)
            if pairs:
                polled[key] = max(highest, 0)
        self._positions = positions
        if polled:
            yield from ask(self._node, {"type": "commit_offsets", "offsets": polled})
        return [[POLL, messages]]

    def _assign(self, op: Op) -> Steps:
        keys: list[str] = op.value
        if op.extra.get("seek-to-beginning?"):
            self._positions = dict.fromkeys(keys, 0)
            return op.value
        request: Body = {"type": "list_committed_offsets", "keys": keys}
        committed = (yield from ask(self._node, request, offsets=_POSITIONS))["offsets"]
        self._positions = {key: self._positions.get(key, committed.get(key, 0)) for key in keys}
        op.extra = op.extra | {COMMITTED: {key: committed.get(key) for key in keys}}
        return op.value


def _crash() -> Steps:
    raise CrashClient
    yield  # makes this a generator, like the others


# ---------------------------------------------------------------- generators


ASSIGN_PROBABILITY = 1 / 64
UNSEEN_PROBABILITY = 1 / 3
CRASH_INTERVAL_S = 30
FINAL_POLL_INTERVAL_S = 0.2


class Offsets:
    """What completed operations have shown: the highest offsets sent, polled, and either."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}  # key -> highest offset sent or polled
        self._sent: dict[str, int] = {}  # of keys that are not polled up to there
        self._polled: dict[str, int] = {}

    def learn(self, op: Op) -> None:
        """Take in an operation that was completed `ok`."""
        found, shown = self._polled, {}
        if op.f == "send":
            _, key, (offset, _message) = op.value[0]
            found, shown = self._sent, {key: offset}
        elif op.f == "poll":
            shown = highest_offsets(op)
        for key, offset in shown.items():
            for known in (found, self.known):
                known[key] = max(known.get(key, -1), offset)
            if self._polled.get(key, -1) >= self._sent.get(key, -1):  # caught up
                self._sent.pop(key, None)
                self._polled.pop(key, None)

    def unseen(self) -> dict[str, dict[Keyword, int]]:
        """Key -> `polled` and `sent`, for each key with offsets sent but never polled."""
        return {
            key: keywords(polled=self._polled.get(key, -1), sent=sent)
            for key, sent in self._sent.items()
        }


def highest_offsets(op: Op) -> dict[str, int]:
    """Key -> highest offset of a completed poll; -1 for a key without messages."""
    return {
        key: max((pair[0] for pair in pairs), default=-1) for key, pairs in op.value[0][1].items()
    }


class KafkaGenerator:
    """The main phase.

    Crashes depend on the clock, so they draw from a stream of their own (`crashes`) and always take a turn for
    themselves: the other operations come in the same order in every run with the same seed.
    """

    def __init__(
        self, keys: Keys, offsets: Offsets, concurrency: int, random: Random, crashes: Random
    ) -> None:
        self._keys = keys
        self._offsets = offsets
        self._random = random
        self._crashes = crashes
        self._crash_gap_ns = 2e9 * CRASH_INTERVAL_S / concurrency
        self._crash_ns = 0
        self._drawn: tuple[int, int | None] | None = None

    def next(self, turn: Turn) -> Draft:
        # The first crash competes with the very first operations, as in the original.
        if turn.now_ns >= self._crash_ns and self._crashes.random() < 0.5:
            self._crash_ns = turn.now_ns + int(self._crashes.random() * self._crash_gap_ns)
            return Draft("crash")
        key, value = self._drawn or self._keys.draw()
        if self._random.random() < ASSIGN_PROBABILITY:
            self._drawn = key, value  # its turn comes after the assign
            return self._assign(str(key))  # keys are strings on the wire
        self._drawn = None
        return (
            Draft("poll", [[POLL]]) if value is None else Draft("send", [[SEND, str(key), value]])
        )

    def update(self, op: Op) -> None:
        if op.type == "ok":
            self._offsets.learn(op)

    def _assign(self, key: str) -> Draft:
        catch_up = self._random.random() < UNSEEN_PROBABILITY  # drawn whether there is any or not
        unseen = self._offsets.unseen()
        if not unseen or not catch_up:
            return Draft("assign", [key])
        # Written with integer keys, in their order, as the original does.
        by_number = {int(each): unseen[each] for each in sorted(unseen, key=int)}
        return Draft("assign", list(dict.fromkeys([*unseen, key])), {"unseen": by_number})


class FinalPolls:
    """The end: each worker crashes its client, assigns every key from 0, and polls until it has
    read up to the highest known offset of each.
    """

    def __init__(self, offsets: Offsets, concurrency: int, random: Random) -> None:
        self._offsets = offsets
        self._concurrency = concurrency
        self._random = random
        self._keys: list[str] = []
        self._missing: list[dict[str, int]] | None = None  # per worker: key -> offset to read up to
        self._step = [0] * concurrency
        self._next_poll_ns = [0] * concurrency

    def next(self, turn: Turn) -> Draft | Wait | None:
        worker, now_ns = turn
        if not self._targets()[worker]:
            return None
        step = self._step[worker]
        if step < 2:
            self._step[worker] += 1
            return Draft("crash") if step == 0 else self._assign()
        if now_ns < self._next_poll_ns[worker]:
            return Wait(self._next_poll_ns[worker])
        gap_ns = self._random.random() * 2e9 * FINAL_POLL_INTERVAL_S
        self._next_poll_ns[worker] = now_ns + math.ceil(gap_ns)
        return Draft("poll", [[POLL]], {"poll-ms": 1000})

    def update(self, op: Op) -> None:
        if op.type != "ok" or op.f != "poll":
            return
        assert isinstance(op.process, int)
        missing = self._targets()[op.process % self._concurrency]
        for key, highest in highest_offsets(op).items():
            if missing.get(key, math.inf) <= highest:
                del missing[key]

    def _targets(self) -> list[dict[str, int]]:
        """Every worker has to read up to the offsets that are known when the phase begins."""
        if self._missing is None:
            # Shorter first, then by text: the order of whole numbers, and of whatever else a node made up.
            self._keys = sorted(self._offsets.known, key=lambda key: (len(key), key))
            self._missing = [dict(self._offsets.known) for _ in range(self._concurrency)]
        return self._missing

    def _assign(self) -> Draft:
        return Draft("assign", list(self._keys), {"seek-to-beginning?": True})
