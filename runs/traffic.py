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

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
_TYPES_MAX = 32_000  # further ones count as one without a name


@dataclass(slots=True)
class Counts:
    """Messages of one type on one class of link; those that did not arrive are lost."""

    messages: int = 0
    sends: int = 0
    receipts: int = 0
    arrived: int = 0


Seen = Mapping[tuple[str, str | None], Counts]  # by link and type


class _Calls:
    """Calls between servers: those that are answered are counted by their causes, the others are open.

    A call is known by who asks, who is asked, and the number that the asker gave it.
    """

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._open: dict[tuple[str, str, int], tuple[str, int]] = {}  # the type; how many messages

    def note(
        self, src: str, dest: str, body: Mapping[str, Any], *, is_new: bool, arrived: bool
    ) -> None:
        """Note that a message was sent, or came."""
        number, answers = integer(body.get("msg_id")), integer(body.get("in_reply_to"))
        if answers is not None and (call := (dest, src, answers)) in self._open:
            request, count = self._open.pop(call)
            if arrived:
                self._counts[_cause(link_of(src, dest), request, body)] += count + is_new
            else:
                self._open[call] = request, count + is_new
        elif number is None or answers is not None:
            self._counts[OTHER] += is_new
        elif is_new:  # a node that was started again may give a number again
            _, count = self._open.get((src, dest, number), ("", 0))
            self._counts[RETRY] += count
            self._open[src, dest, number] = str(body.get("type")), 1

    def by_cause(self) -> Counter[str]:
        """How many messages each cause has."""
        return self._counts + Counter({RETRY: sum(count for _, count in self._open.values())})


def _cause(link: str, request: str, answer: Mapping[str, Any]) -> str:
    """Why the messages of a call were sent that got this answer: one of `CAUSES`."""
    code = integer(answer.get("code"))
    if link != STORE:
        return HAND_OVER if request in HAND_OVERS else OTHER
    if code == PRECONDITION_FAILED:
        return CONFLICT
    if request == "read":
        return REFRESH
    return COMMIT if request in WRITES and code is None else OTHER


class Traffic:
    """The messages of a journal. Keeps the numbers of those under way, and calls that are not answered."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """Read the events in their order. They may be cut anywhere."""
        self.counts: Seen = defaultdict(Counts)
        self._under_way = set[int]()
        self._newest = -1  # the greatest number of a message that was sent
        self._calls = _Calls()
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        message, is_send = event["message"], event["type"] == "send"
        src, dest, number = sender(event), message["dest"], message["id"]
        is_new = is_send or number > self._newest  # a line may lack: its sending, or its receipt
        arrived = not is_send and (is_new or number in self._under_way)
        self._newest = max(self._newest, number)
        (self._under_way.add if is_send else self._under_way.discard)(number)
        link = link_of(src, dest)
        counts = self._of_type(link, message["body"].get("type"))
        counts.messages += is_new
        counts.arrived += arrived
        counts.sends += is_send
        counts.receipts += not is_send
        if link != CLIENT and (is_new or arrived):
            self._calls.note(src, dest, message["body"], is_new=is_new, arrived=arrived)

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
