"""Messages of a journal: how many a run took, in all and for each operation, on which links, of which types.

The definitions are those of the real tool's network checker [maelstrom net/checker.clj], so that figures can
be compared with its results and with published ones. `analysis.metrics.network` expresses them a second time.

- A message counts once, whether or not it arrived.
- *Client messages* have a client at either end. All others are *server messages*, so that a call to the
  coordination store is two of them.
- Messages per operation are divided by what clients invoked, whatever became of it (`assign` and `crash`
  too), not by what succeeded.
- The handshake (`init`, `init_ok`) counts among the client messages, as in the real tool's results.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.operations import Row

SERVICES = ("lin-kv", "seq-kv", "lww-kv", "lin-tso")  # [maelstrom service.clj]
CLIENT_INITIAL = "c"  # the names of clients begin so [maelstrom util.clj]
CLIENT, STORE, NODE = "client", "node-store", "node-node"
LINKS = (CLIENT, STORE, NODE)

Event = dict[str, Any]  # a line of a journal: "id", "time", "type", "message"


@dataclass(slots=True)
class Message:
    """A message with the events that the journal has of it: none received where it was lost."""

    link: str
    type: str | None
    send_count: int = 0
    recv_count: int = 0


def messages(events: Iterable[Event]) -> list[Message]:
    """The messages of a journal, in the order in which they first occur."""
    by_id: dict[int, Message] = {}
    for event in events:
        message = event["message"]
        known = by_id.get(message["id"])
        if known is None:
            link = link_of(message["src"], message["dest"])
            known = by_id[message["id"]] = Message(link, message["body"].get("type"))
        if event["type"] == "send":
            known.send_count += 1
        else:
            known.recv_count += 1
    return list(by_id.values())


def is_client(name: str) -> bool:
    return name.startswith(CLIENT_INITIAL)


def link_of(src: str, dest: str) -> str:
    """The class of the link between two parties, one of `LINKS`."""
    if is_client(src) or is_client(dest):
        return CLIENT
    return STORE if src in SERVICES or dest in SERVICES else NODE


def network_statistics(sent: Sequence[Message], operation_count: int) -> list[Row]:
    """The real tool's `:net` map as rows: all, clients, servers; none without messages."""
    scopes = {
        "all": sent,
        "clients": [each for each in sent if each.link == CLIENT],
        "servers": [each for each in sent if each.link != CLIENT],
    }
    return [
        {
            "scope": scope,
            "send_count": sum(each.send_count for each in chosen),
            "recv_count": sum(each.recv_count for each in chosen),
            "message_count": len(chosen),
            "messages_per_operation": _share(len(chosen), operation_count),
        }
        for scope, chosen in scopes.items()
        if sent
    ]


def messages_by_type(sent: Iterable[Message], operation_count: int) -> list[Row]:
    """Messages of each type on each class of link; `lost_count` were sent and never received."""
    groups: dict[tuple[str, str | None], list[Message]] = defaultdict(list)
    for each in sent:
        groups[each.link, each.type].append(each)
    rows = [
        {
            "link": link,
            "type": type_,
            "message_count": len(group),
            "lost_count": sum(each.send_count > 0 and not each.recv_count for each in group),
            "messages_per_operation": _share(len(group), operation_count),
        }
        for (link, type_), group in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["link"], -row["message_count"], str(row["type"])))


def _share(count: int, operation_count: int) -> float | None:
    return count / operation_count if operation_count else None


_AS_REPORTED = {
    "send-count": "send_count",
    "recv-count": "recv_count",
    "msg-count": "message_count",
    "msgs-per-op": "messages_per_operation",
}


def disagreements(reported: Mapping[str, Any], network: Iterable[Row]) -> list[str]:
    """How rows of `network_statistics` differ from a bench's `:net` map, as sentences.

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
