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

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from runs.facts import integer
from runs.operations import Row

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
_SENT, _ARRIVED = 1, 2  # how far a message came
_DONE, _FAILED = "done", "failed"  # answers, beside `CONFLICT`
_TYPES_MAX = 32_000  # further ones count as one without a name


@dataclass(slots=True)
class Counts:
    """Messages of one type on one class of link; those that did not arrive are lost."""

    messages: int = 0
    sends: int = 0
    receipts: int = 0
    arrived: int = 0


Seen = Mapping[tuple[str, str | None], Counts]  # by link and type


class ById:
    """Numbers for each id: arrays from 0 on, and dictionaries for ids far beyond how many there are."""

    def __init__(self, *typecodes: str) -> None:
        """A column for each of these types of `array`; what was not set is 0."""
        self._near = [array(each) for each in typecodes]
        self._far: list[dict[int, int]] = [defaultdict(int) for _ in typecodes]

    def columns(self, number: int) -> Any:
        """The arrays or the dictionaries: whichever have this id."""
        size = len(self._near[0])
        if size <= number < 2 * size + 4096 and number not in self._far[0]:
            for column in self._near:
                column.frombytes(bytes(column.itemsize * (number + 1 - size + size // 8 + 1024)))
            size = len(self._near[0])
        return self._near if 0 <= number < size and number not in self._far[0] else self._far

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of each id, those that are far away last."""
        yield from zip(*self._near, strict=True)
        yield from zip(*(column.values() for column in self._far), strict=True)


class ServerCall(NamedTuple):
    """What is known of a call between servers: the type of its request, and the answer that arrived first."""

    asker: str
    asked: str
    request: str | None = None
    answer: str | None = None

    def cause(self) -> str:
        """Say why the messages of this call were sent: one of `CAUSES`."""
        if self.request is None:
            return OTHER
        if self.answer is None:
            return RETRY
        if link_of(self.asker, self.asked) != STORE:
            return HAND_OVER if self.request in HAND_OVERS else OTHER
        if self.answer == CONFLICT:
            return CONFLICT
        if self.request == "read":
            return REFRESH
        return COMMIT if self.request in WRITES and self.answer == _DONE else OTHER


class _Calls:
    """Calls between servers, eight bytes each: the place of what is known of it, and how many messages it has.

    Few different things can be known of a call, so each stands once. A call has the number that its asker gave
    it; where that gave one number to calls of several others, only the first has the asker's column.
    """

    def __init__(self) -> None:
        self._known: list[ServerCall | None] = [None]
        self._places: dict[ServerCall, int] = {}
        self._of: dict[str | tuple[str, str], ById] = defaultdict(lambda: ById("I", "I"))
        self._unasked = 0  # requests that want no answer

    def note(
        self, src: str, dest: str, body: Mapping[str, Any], *, is_new: bool, arrived: bool
    ) -> None:
        """Note that a message was sent, or came."""
        number, answers = integer(body.get("msg_id")), integer(body.get("in_reply_to"))
        if answers is not None:
            failed = {None: _DONE, PRECONDITION_FAILED: CONFLICT}
            answer = failed.get(integer(body.get("code")), _FAILED) if arrived else None
            self._learn(answers, ServerCall(dest, src, None, answer), is_new=is_new)
        elif number is not None:
            self._learn(number, ServerCall(src, dest, str(body.get("type"))), is_new=is_new)
        else:
            self._unasked += is_new

    def _learn(self, number: int, call: ServerCall, *, is_new: bool) -> None:
        places, counts = self._of[call.asker].columns(number)
        known = self._known[places[number]]
        if known and known.asked != call.asked:
            places, counts = self._of[call.asker, call.asked].columns(number)
            known = self._known[places[number]]
        if known:
            call = known._replace(
                request=known.request or call.request, answer=known.answer or call.answer
            )
        places[number] = self._places.setdefault(call, len(self._known))
        if places[number] == len(self._known):
            self._known.append(call)
        counts[number] += is_new

    def by_cause(self) -> Counter[str]:
        """How many messages each cause has."""
        counts = [0] * len(self._known)
        for each in self._of.values():
            for place, count in each.rows():
                counts[place] += count
        counted = Counter({OTHER: self._unasked})
        for call, count in zip(self._known, counts, strict=True):
            counted[call.cause() if call else OTHER] += count
        return counted


class Traffic:
    """The messages of a journal. Keeps a byte for each, and eight for a call between servers."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """Read the events in their order. They may be cut anywhere."""
        self.counts: Seen = defaultdict(Counts)
        self._messages = ById("B")  # how far each came
        self._calls = _Calls()
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        message, is_send = event["message"], event["type"] == "send"
        src, dest, number = sender(event), message["dest"], message["id"]
        (reached,) = self._messages.columns(number)
        before, after = reached[number], max(reached[number], _SENT if is_send else _ARRIVED)
        reached[number] = after
        link, arrived = link_of(src, dest), before < after == _ARRIVED
        counts = self._of_type(link, message["body"].get("type"))
        counts.messages += not before
        counts.arrived += arrived
        counts.sends += is_send
        counts.receipts += not is_send
        if link != CLIENT and before < after:
            self._calls.note(src, dest, message["body"], is_new=not before, arrived=arrived)

    def _of_type(self, link: str, type_: object) -> Counts:
        kind = link, type_ if isinstance(type_, str) else None
        if len(self.counts) >= _TYPES_MAX and kind not in self.counts:
            kind = link, None
        return self.counts[kind]

    def causes(self, operations: int) -> list[Row]:
        """Server messages by cause, a row for each of `CAUSES`; none without messages."""
        counted = self._calls.by_cause()
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


@lru_cache(maxsize=65536)
def link_of(src: str, dest: str) -> str:
    """The class of the link between two parties, one of `LINKS`."""
    if is_client(src) or is_client(dest):
        return CLIENT
    return STORE if src in SERVICES or dest in SERVICES else NODE


def share(count: float, of: float) -> float | None:
    """`count` for each of `of`; None where there are none."""
    return count / of if of else None
