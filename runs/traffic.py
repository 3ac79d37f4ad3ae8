"""Messages of a journal, in one pass: how many, on which links, of which types, and what servers' were for.

The definitions are those of the real tool's network checker [maelstrom net/checker.clj], so that figures can be
compared with its results and with published ones.

- A message counts once, whether or not it arrived.
- *Client messages* have a client at either end. All others are *server messages*, so that a call to the
  coordination store is two of them.
- A node that writes another name into `src` sent the message itself. The real tool goes by that name.
- Messages per operation are divided by what clients invoked, whatever became of it (`assign` and `crash`
  too), not by what succeeded.
- The handshake (`init`, `init_ok`) counts among the client messages, as in the real tool's results.

Each server message has a *cause*, an answer that of its request:

- commit: a store write (`cas`, `write`) that succeeded: it moves the log on;
- conflict: a request to the store that was answered with error 22: another node was first;
- refresh: a store `read`: a view was too old, or a conflict made a node look again;
- hand-over: a batch or message given to another node to be appended (`hand_over`, and the `send` that follower
  nodes pass on to a leader);
- retry: a request whose answer did not arrive within the run: a message was lost, or the node gave up and had
  to ask again;
- other: the rest (pushes to other nodes, answers to requests that were not recorded).
"""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = dict[str, Any]
Event = dict[str, Any]  # a line of a journal: "id", "time", "type", "message"

SERVICES = ("lin-kv", "seq-kv", "lww-kv", "lin-tso")  # [maelstrom service.clj]
CLIENT_INITIAL = "c"  # the names of clients begin so [maelstrom util.clj]
CLIENT, STORE, NODE = "client", "node-store", "node-node"
LINKS = (CLIENT, STORE, NODE)

COMMIT, CONFLICT, REFRESH = "commit", "conflict", "refresh"
HAND_OVER, RETRY, OTHER = "hand-over", "retry", "other"
CAUSES = (COMMIT, CONFLICT, REFRESH, HAND_OVER, RETRY, OTHER)
PRECONDITION_FAILED = 22  # [maelstrom errors.edn]
WRITES, HAND_OVERS = ("cas", "write"), ("hand_over", "send")
_KNOWN, _ARRIVED = 1, 2  # of a message
_TYPES_MAX = 32_000  # further ones count as one without a name
_CONFLICT = 2  # a rank of errors
_COUNT_AT, _KIND_AT = 3, 40  # bits of the state of a call
_COUNT_MAX = (1 << _KIND_AT - _COUNT_AT) - 1


@dataclass(slots=True)
class Counts:
    """Messages of one type on one class of link; those that did not arrive are lost."""

    messages: int = 0
    sends: int = 0
    receipts: int = 0
    arrived: int = 0


Seen = Mapping[tuple[str, str | None], Counts]  # by link and type


class Kind(NamedTuple):
    """What a call between servers asks for: who asks whom, and the request's type if it was recorded."""

    pair: int
    request: str | None
    at_store: bool

    def cause(self, *, arrived: bool, error: int) -> str:
        """The cause of such a call; `error` as in `_rank`."""
        if self.request is None:
            return OTHER
        if not arrived:
            return RETRY
        if not self.at_store:
            return HAND_OVER if self.request in HAND_OVERS else OTHER
        if error == _CONFLICT:
            return CONFLICT
        if self.request == "read":
            return REFRESH
        return COMMIT if self.request in WRITES and not error else OTHER


class ById:
    """A number for each id: an array from 0 on, and a dictionary for ids far beyond how many there are."""

    def __init__(self, typecode: str) -> None:
        self.near: array[int] = array(typecode)
        self.far: dict[int, int] = defaultdict(int)

    def holding(self, number: int) -> Any:
        """The array or the dictionary: whichever has this id."""
        if number in self.far:
            return self.far
        size = len(self.near)
        if size <= number < 2 * size + 4096:
            more = number + 1 - size + size // 8 + 1024
            self.near.frombytes(bytes(self.near.itemsize * more))
        return self.near if 0 <= number < len(self.near) else self.far


class _Calls:
    """Requests between servers and their answers, which may be copies: eight bytes each.

    The state of a call is a number: its kind, how many messages it has, the rank of its lowest error (2 bits),
    and whether an answer arrived (1 bit). It stands at the request's number in an array of whoever asks. Where
    that is not possible (numbers far apart, or one number for two calls) a dictionary has it.
    """

    def __init__(self) -> None:
        self._kinds: list[Kind | None] = [None]  # the place 0 says that there is no call
        self._numbers: dict[Kind, int] = {}
        self._of_askers: dict[str, ById] = defaultdict(lambda: ById("Q"))
        self._others: dict[tuple[int, int], int] = defaultdict(int)

    def note(
        self, asker: str, number: int, kind: Kind, *, is_new: bool, arrived: bool, error: int = 0
    ) -> None:
        """Note a message of the call `number` of `asker`; `arrived` is said of answers alone."""
        states, place = self._place(asker, number, kind.pair)
        state = states[place]
        known = self._kinds[state >> _KIND_AT]
        if not known or (known.request is None and kind.request is not None):
            state = state & (1 << _KIND_AT) - 1 | self._kind(kind) << _KIND_AT
        before = state >> 1 & 3
        lowest = min(before or error, error or before)
        state = state & ~6 | lowest << 1 | arrived
        states[place] = state + (is_new << _COUNT_AT)

    def _place(self, asker: str, number: int, pair: int) -> tuple[Any, Any]:
        states = self._of_askers[asker].holding(number)
        if isinstance(states, array) and (pair, number) not in self._others:
            known = self._kinds[states[number] >> _KIND_AT]
            if not known or known.pair == pair:
                return states, number
        return self._others, (pair, number)

    def _kind(self, kind: Kind) -> int:
        number = self._numbers.setdefault(kind, len(self._kinds))
        if number == len(self._kinds):
            self._kinds.append(kind)
        return number

    def by_cause(self) -> Counter[str]:
        """How many messages each cause has."""
        counted: Counter[str] = Counter()
        near = (each.near for each in self._of_askers.values())
        for states in (*near, self._others.values()):
            for state, times in Counter(states).items():
                kind, count = self._kinds[state >> _KIND_AT], state >> _COUNT_AT & _COUNT_MAX
                if kind:
                    cause = kind.cause(arrived=bool(state & 1), error=state >> 1 & 3)
                    counted[cause] += times * count
        return counted


def _rank(code: int | None) -> int:
    """Of an error: 1, `_CONFLICT` or 3, as its code is below, at or above that of a conflict; 0 without one."""
    return 0 if code is None else 2 + (code > PRECONDITION_FAILED) - (code < PRECONDITION_FAILED)


class Traffic:
    """The messages of a journal. Keeps a byte for each, and eight for a call between servers."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """Read the events in their order. They may be cut anywhere."""
        self.counts: Seen = defaultdict(Counts)
        self._states = ById("B")  # of messages
        self._pairs: dict[tuple[str, str], tuple[int, str]] = {}
        self._calls = _Calls()
        self._unasked = 0  # requests that want no answer
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        message = event["message"]
        is_send = event["type"] == "send"
        pair, link = self._pair(sender(event), message["dest"])
        counts = self._of_type(link, message["body"].get("type"))
        is_new, has_just_arrived = self._seen(message["id"], is_send)
        counts.messages += is_new
        counts.arrived += has_just_arrived
        counts.sends += is_send
        counts.receipts += not is_send
        if link != CLIENT and (is_new or has_just_arrived):
            self._note_call(pair, event, link, is_new=is_new, arrived=has_just_arrived)

    def _note_call(
        self, pair: int, event: Event, link: str, *, is_new: bool, arrived: bool
    ) -> None:
        message = event["message"]
        body, at_store = message["body"], link == STORE
        answers, number = _whole(body.get("in_reply_to")), _whole(body.get("msg_id"))
        if answers is not None:
            asked, _ = self._pair(message["dest"], sender(event))
            error = _rank(_whole(body.get("code")))
            kind = Kind(asked, None, at_store)
            self._calls.note(
                message["dest"], answers, kind, is_new=is_new, arrived=arrived, error=error
            )
        elif number is not None:
            kind = Kind(pair, str(body.get("type")), at_store)
            self._calls.note(sender(event), number, kind, is_new=is_new, arrived=False)
        else:
            self._unasked += is_new

    def _pair(self, src: str, dest: str) -> tuple[int, str]:
        """A number for who sends to whom, and the class of their link."""
        known = self._pairs.get((src, dest))
        if known is None:
            known = self._pairs[src, dest] = len(self._pairs), link_of(src, dest)
        return known

    def _of_type(self, link: str, type_: object) -> Counts:
        kind = link, type_ if isinstance(type_, str) else None
        if len(self.counts) >= _TYPES_MAX and kind not in self.counts:
            kind = link, None
        return self.counts[kind]

    def _seen(self, number: int, is_send: bool) -> tuple[bool, bool]:
        """Note an event of a message; whether it is the first, and whether it is the first receipt."""
        states = self._states.holding(number)
        before = states[number]
        states[number] = before | _KNOWN | (0 if is_send else _ARRIVED)
        return not before, not is_send and not before & _ARRIVED

    def causes(self, operations: int) -> list[Row]:
        """Server messages by cause, a row for each of `CAUSES`; none without messages."""
        counted = self._calls.by_cause() + Counter({OTHER: self._unasked})
        return [
            {
                "cause": cause,
                "message_count": counted[cause],
                "messages_per_operation": share(counted[cause], operations),
            }
            for cause in CAUSES
            if self.counts
        ]


def network(counts: Seen, operations: int) -> list[Row]:
    """The real tool's `:net` map as rows: all, clients, servers; none without messages."""
    links = {"all": LINKS, "clients": (CLIENT,), "servers": (STORE, NODE)} if counts else {}
    scopes = {
        scope: [each for (link, _), each in counts.items() if link in its]
        for scope, its in links.items()
    }
    return [
        {
            "scope": scope,
            "send_count": sum(each.sends for each in its),
            "recv_count": sum(each.receipts for each in its),
            "message_count": sum(each.messages for each in its),
            "messages_per_operation": share(sum(each.messages for each in its), operations),
        }
        for scope, its in scopes.items()
    ]


def by_type(counts: Seen, operations: int) -> list[Row]:
    """Messages of each type on each class of link; `lost_count` were sent and never received."""
    rows = [
        {
            "link": link,
            "type": type_,
            "message_count": each.messages,
            "lost_count": each.messages - each.arrived,
            "messages_per_operation": share(each.messages, operations),
        }
        for (link, type_), each in counts.items()
    ]
    return sorted(rows, key=lambda row: (row["link"], -row["message_count"], str(row["type"])))


def is_client(name: str) -> bool:
    return name.startswith(CLIENT_INITIAL)


def sender(event: Event) -> str:
    """Who sent the message of an event, whatever name stands in its `src`."""
    by = event.get("by")
    return by if isinstance(by, str) and by else str(event["message"]["src"])


def link_of(src: str, dest: str) -> str:
    """The class of the link between two parties, one of `LINKS`."""
    if is_client(src) or is_client(dest):
        return CLIENT
    return STORE if src in SERVICES or dest in SERVICES else NODE


def share(count: float, of: float) -> float | None:
    """`count` for each of `of`; None where there are none."""
    return count / of if of else None


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


_AS_REPORTED = {
    "send-count": "send_count",
    "recv-count": "recv_count",
    "msg-count": "message_count",
    "msgs-per-op": "messages_per_operation",
}


def disagreements(reported: Mapping[str, Any], network: Iterable[Row]) -> list[str]:
    """How rows of `network` differ from a bench's `:net` map, as sentences.

    `reported` is the map; it is empty if the bench left none.
    """
    found = []
    for row in network:
        scope = reported.get(row["scope"])
        for word, column in _AS_REPORTED.items():
            other = scope.get(word) if isinstance(scope, Mapping) else None
            # The real tool rounds to 32 bits, hence the tolerance.
            if other is not None and not math.isclose(row[column] or 0, other, rel_tol=1e-6):
                words = f"{row[column]} here, {other} in the bench's results"
                found.append(f"{row['scope']} {word}: {words}")
    return found
