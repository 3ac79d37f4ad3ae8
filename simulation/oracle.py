"""The clients' oracle: the answers that a client of any log may get, said naively and checked one by one.

The oracle sees every request and every answer. It raises `Violation`, whose text begins with the name that
the invariant has in the design, in the models and in the code. `simulation.headlog` adds what the registers of
the leaderless log must hold.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from leaderless.core.limits import Limits
from leaderless.wire.bodies import ErrorCode

Body = dict[str, Any]
Pairs = list[list[Any]]  # [[offset, message], ...]


class Violation(AssertionError):
    """An invariant does not hold; the text begins with its name."""

    @property
    def name(self) -> str:
        return str(self).partition(":")[0]


def require(holds: bool, name: str, text: str) -> None:
    """Raise `Violation` unless the invariant `name` holds."""
    if not holds:
        raise Violation(f"{name}: {text}")


class Asked(NamedTuple):
    """A request that `node` received at `at_s` and has not answered yet.

    `seems_from_s`: when it must take the request to have come, if that is earlier.
    """

    node: str
    body: Body
    at_s: float
    seems_from_s: float = inf


class Promises(NamedTuple):
    """What a strategy promises its clients.

    `freshness_s`: a poll shows what was acknowledged so long before it was asked (0: polls are
    linearizable). `dense`: offsets have no holes. `commits_kept`: every node lists an acknowledged commit
    at once, whichever node dies. `evicts`: memory is so small that a poll may leave a part to the next one.
    `answer_bytes`: an answer to a poll may end where the next message would make it larger than that.
    `poll_messages`: an answer may end after so many messages of a key.
    """

    freshness_s: float = 0.0
    dense: bool = True
    commits_kept: bool = True
    evicts: bool = False
    answer_bytes: float = inf
    poll_messages: int = Limits().poll_messages


# An answer that takes longer may leave out keys that must be read back from runs.
READING_S = 1.0


class Polled(NamedTuple):
    """A poll that was asked at `at_s`.

    `full`: the next message might have been too much for its answer, or there was no time to read it back.
    """

    at_s: float
    full: bool


class Rising:
    """A number that never falls, and when it rose."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._values: list[int] = []

    def raise_to(self, value: int, at_s: float) -> None:
        if value > self.at(at_s):
            self._times.append(at_s)
            self._values.append(value)

    def at(self, at_s: float) -> int:
        """What it was at a time; -1 before it first rose."""
        place = bisect_right(self._times, at_s)
        return self._values[place - 1] if place else -1


class Oracle:
    """What clients have sent, and the answers that they got.

    No two sends carry the same message for the same key. A send that was answered with an indefinite error,
    or never, may have happened; one that was answered with a definite error must not have.
    """

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self.trimmed: Mapping[
            str, int
        ] = {}  # of each key the first offset that a retention has left
        self._sent: set[tuple[str, Any]] = set()
        self._largest = 0  # bytes of a message that was sent, about
        self._refused: set[tuple[str, Any]] = set()
        self._shown: dict[str, dict[int, Any]] = defaultdict(dict)  # key -> offset -> message
        self._offsets: dict[tuple[str, Any], int] = {}
        self._passed: dict[str, set[int]] = defaultdict(set)  # key -> holes that polls went past
        self._acknowledged: dict[str, Rising] = defaultdict(Rising)  # key -> offset
        self._commits_asked: dict[str, int] = {}
        self._commits_known: dict[str, Rising] = defaultdict(Rising)

    def asked(self, body: Body) -> None:
        match body:
            case {"type": "send", "key": key, "msg": msg}:
                self._sent.add((key, msg))
                self._largest = max(self._largest, _weight(msg))
            case {"type": "commit_offsets", "offsets": offsets}:
                raise_to(self._commits_asked, offsets)

    def killed(self, node: str) -> None:
        """A node lost its memory. Clients must not notice."""

    def answered(self, asked: Asked, reply: Body, now_s: float) -> None:
        match asked.body, reply:
            case {"type": "send", "key": key, "msg": msg}, {"type": "send_ok", "offset": offset}:
                self._send_answered(key, msg, offset, now_s)
            case {"offsets": offsets}, {"type": "poll_ok", "msgs": msgs}:
                require(all(msgs.values()), "PollContiguous", f"a key without messages: {msgs}")
                slow = self._promises.evicts and bool(msgs) and now_s - asked.at_s > READING_S
                polled = Polled(asked.at_s, slow or self._is_full(msgs))
                for key, start in offsets.items():
                    self._poll_answered(key, max(0, start), msgs.get(key, []), polled)
            case {"offsets": offsets}, {"type": "commit_offsets_ok"}:
                self._commit_answered(asked.node, offsets, now_s)
            case {"keys": keys}, {"type": "list_committed_offsets_ok", "offsets": offsets}:
                for key in keys:
                    self._listed(asked, key, offsets.get(key, -1), now_s)
            case request, {"type": "error", "code": code, "text": text}:
                self._failed(request, ErrorCode(code), text)

    def changed(self, register: str, old: Any, new: Any, now_s: float) -> None:
        """A register of the store changed. No client sees it."""

    def listed_at_last(self, offsets: dict[str, int]) -> None:
        """What a node lists when all faults are over and everything was delivered."""

    def handed_over(self, body: Body) -> None:
        """A node tells a peer what it knows of the log."""

    # ------------------------------------------------------------ sends and polls

    def _send_answered(self, key: str, msg: Any, offset: int, now_s: float) -> None:
        self._show(key, offset, msg)
        self._acknowledged[key].raise_to(offset, now_s)

    def _is_full(self, msgs: dict[str, Pairs]) -> bool:
        size = sum(_weight(msg) for pairs in msgs.values() for _, msg in pairs)
        return size + self._largest > self._promises.answer_bytes

    def _poll_answered(self, key: str, start: int, pairs: Pairs, polled: Polled) -> None:
        begins, left = pairs[0][0] if pairs else inf, self.trimmed.get(key, 0)
        start = max(start, int(min(begins, left)))  # what was deleted may still be in memory
        self._require_contiguous(key, start, [offset for offset, _ in pairs])
        for offset, msg in pairs:
            self._show(key, offset, msg)
        due = self._acknowledged[key].at(polled.at_s - self._promises.freshness_s)
        if not polled.full:
            self._require_fresh(key, start, pairs, due + 1)

    def _show(self, key: str, offset: int, msg: Any) -> None:
        """A client learns that a message is at an offset."""
        where = f"{msg!r} of key {key}"
        require((key, msg) in self._sent, "AppendedWasSent", where)
        require((key, msg) not in self._refused, "RejectedNeverAppended", where)
        place = self._offsets.setdefault((key, msg), offset)
        require(place == offset, "AckedExactlyOnce", f"{where} is at {place} and at {offset}")
        shown = self._shown[key].setdefault(offset, msg)
        require(shown == msg, "ViewIsPrefix", f"{offset} of key {key} holds {shown!r} and {msg!r}")
        late = offset in self._passed[key]
        require(not late, "PollContiguous", f"{where} appears at {offset}, behind a poll")

    def _require_contiguous(self, key: str, start: int, offsets: list[int]) -> None:
        """Every offset from the start to the last one is there, or is a hole and stays one."""
        if offsets == list(range(start, start + len(offsets))):
            return
        shown, answered = self._shown[key], set(offsets)
        holes = {each for each in range(start, offsets[-1]) if each not in answered}
        sound = not self._promises.dense and offsets == sorted(answered) and offsets[0] >= start
        sound = sound and not (holes & shown.keys())
        require(sound, "PollContiguous", f"{key} from {start}: {offsets}, of {sorted(shown)}")
        self._passed[key] |= holes

    def _require_fresh(self, key: str, start: int, pairs: Pairs, due: int) -> None:
        """A poll from `start` reaches `due`, the first offset that it need not show."""
        end = pairs[-1][0] + 1 if pairs else start
        cut_short = len(pairs) >= self._promises.poll_messages or (
            self._promises.evicts and bool(pairs)
        )
        if end < due and not cut_short:
            raise Violation(f"PollFresh: {key} from {start} to {end}, {due} were there")

    def _failed(self, request: Body, code: ErrorCode, text: str) -> None:
        require(code is not ErrorCode.CRASH, "NeverCrashes", text)
        if request["type"] == "send" and code.definite:
            key, msg = request["key"], request["msg"]
            gone = not self._is_in_log(key, msg)
            require(gone, "RejectedNeverAppended", f"{msg!r} of key {key}: {text}")
            self._refused.add((key, msg))

    def _is_in_log(self, key: str, msg: Any) -> bool:
        return (key, msg) in self._offsets

    # ------------------------------------------------------------ committed offsets

    def _commit_answered(self, _node: str, offsets: dict[str, int], now_s: float) -> None:
        for key, offset in offsets.items():
            self._commits_known[key].raise_to(offset, now_s)

    def _listed(self, asked: Asked, key: str, offset: int, now_s: float) -> None:
        self._require_not_ahead(key, offset)
        if self._promises.commits_kept:
            require_kept(key, offset, self._commits_known[key].at(asked.at_s))
            self._commits_known[key].raise_to(offset, now_s)

    def _require_not_ahead(self, key: str, offset: int) -> None:
        asked = self._commits_asked.get(key, -1)
        require(offset <= asked, "CommitNeverAhead", f"{key} at {offset}, asked for {asked}")


def _weight(msg: Any) -> int:
    """About the bytes that a message takes in an answer, rather too many."""
    return 128 + (len(msg) if isinstance(msg, str) else 0)


def require_kept(key: str, offset: int, known: int) -> None:
    """A committed offset does not fall below what was known of it."""
    require(offset >= known, "CommitsKept", f"{key} was at {known}, is at {offset}")


def raise_to(known: dict[str, int], offsets: dict[str, int]) -> None:
    for key, offset in offsets.items():
        known[key] = max(offset, known.get(key, -1))
