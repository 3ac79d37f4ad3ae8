"""The clients of an explored cluster: their requests in order, and the history that the checker reads.

Each message is sent by a client of its own, and so is each commit. One consumer polls through the last node,
from where its last poll ended. One client lists committed offsets through the last node. One fences the log and
opens it again, through n0. A client asks when it has the answer before, or when its node was killed meanwhile
or stood still for too long: then the operation is indefinite, and another process takes its place, as in the
bench.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from leaderless.wire.bodies import ErrorCode
from runs.history import Keyword, Op, OpType
from simulation.exploration.setting import COMPACTOR, CONSUMER, Setting

KEY = "k"
LOST = "lost"  # what a client sees of a node that was killed, or that stood still for too long
SEND, POLL = Keyword("send"), Keyword("poll")
Body = dict[str, Any]
Requests = tuple[tuple[str, int], ...]  # their types; message or offset
Call = tuple[str, int]  # a client, and which of its requests it is


@dataclass(slots=True)
class Client:
    """`asked`: how many requests were made; `waiting`: whether the last one has no answer yet."""

    name: str
    node: str
    process: int
    requests: Requests
    asked: int = 0
    waiting: bool = False
    position: int = 0  # the first offset that was not polled
    # By the digest: what it was told, and when it asked.
    seen: list[Any] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether its next request may be made."""
        return not self.waiting and self.asked < len(self.requests)

    @property
    def done(self) -> bool:
        """Whether it has nothing to ask, and waits for nothing."""
        return not self.waiting and self.asked == len(self.requests)

    @property
    def answers(self) -> list[Body]:
        """What it was told."""
        return [each for each in self.seen if isinstance(each, dict)]


def clients_of(setting: Setting) -> list[Client]:
    """The clients of an exploration."""
    found = _of_programs(setting) if setting.programs else _of_nodes(setting)
    return [
        Client(f"c{number}", process, number, requests)
        for number, (process, requests) in enumerate(found, 1)
        if requests
    ]


def _of_nodes(setting: Setting) -> Iterator[tuple[str, Requests]]:
    names = setting.names
    for number in range(setting.before, setting.before + setting.sends):
        yield names[number % len(names)], (("send", number),)
    yield names[-1], (("poll", 0),) * setting.polls
    for offset in range(setting.commits):
        yield names[offset % len(names)], (("commit_offsets", offset),)
    yield names[-1], (("list_committed_offsets", 0),) * bool(setting.commits)
    yield names[0], (("fence", 0), ("unfence", 0)) * setting.fence


def _of_programs(setting: Setting) -> Iterator[tuple[str, Requests]]:
    for number, process in enumerate(setting.names[: setting.sends], setting.before):
        yield process, (("send", number),)
    yield CONSUMER, (("poll", 0),) * setting.polls
    yield COMPACTOR, (("compact", 0),) * setting.compactions


class History:
    """The operations of the clients, and what each client could know when it asked.

    `answers` counts answers, by client and request; `changes` counts changes of the store.
    """

    def __init__(self, clients: list[Client]) -> None:
        self.clients = {client.name: client for client in clients}
        self.ops: list[Op] = []
        self.changes = 0
        self._answered: set[tuple[str, int]] = set()
        self._processes = 1 + max((client.process for client in clients), default=0)

    def ask(self, client: Client) -> Body:
        """The next request of a client, and its invocation."""
        kind, number = client.requests[client.asked]
        client.asked += 1
        client.waiting = True
        client.seen.append((sorted(self._answered), self.changes))
        self._add("invoke", client.process, kind, _asked(kind, number))
        bodies: dict[str, Body] = {
            "send": {"key": KEY, "msg": number},
            "poll": {"offsets": {KEY: client.position}},
            "commit_offsets": {"offsets": {KEY: number}},
            "list_committed_offsets": {"keys": [KEY]},
        }
        return {"type": kind, **bodies.get(kind, {}), "msg_id": client.asked}

    def answer(self, client: Client, body: Body) -> None:
        """The answer to the last request of a client; one to an earlier request says nothing new."""
        if not client.waiting or body["in_reply_to"] != client.asked:
            return
        client.waiting = False
        client.seen.append({name: body[name] for name in sorted(body)})
        kind, number = client.requests[client.asked - 1]
        match kind, body:
            case "send", {"type": "send_ok", "offset": offset}:
                self._add("ok", client.process, kind, [[SEND, KEY, [offset, number]]])
            case "poll", {"type": "poll_ok", "msgs": msgs}:
                client.position = max([client.position, *(at + 1 for at, _ in msgs.get(KEY, []))])
                self._add("ok", client.process, kind, [[POLL, msgs]])
            case _, {"type": "error", "code": code}:
                self._end(client, "fail" if ErrorCode(code).definite else "info")
                return
        self._answered.add((client.name, client.asked))

    def lose(self, node: str, owed: Container[Call]) -> None:
        """A node forgets what it was asked, except the calls that are `owed`: it may have happened."""
        for client in self.clients.values():
            gone = (client.name, client.asked) not in owed
            if client.node == node and client.waiting and gone:
                client.waiting = False
                client.seen.append(LOST)
                self._end(client, "info")

    def preface(self, number: int, offset: int) -> None:
        """A message was sent, and acknowledged, before the exploration began."""
        self._beside("send", _asked("send", number), [[SEND, KEY, [offset, number]]])

    def read(self, msgs: dict[str, Any]) -> None:
        """A last poll from the beginning, and what it showed."""
        self._beside("poll", _asked("poll"), [[POLL, msgs]])

    def digest(self) -> list[object]:
        """Equal for histories that differ only in the order of answers, or in that of requests."""
        return [(each.name, each.asked, each.waiting, each.seen) for each in self.clients.values()]

    def _beside(self, kind: str, asked: object, told: object) -> None:
        """An operation of somebody else, which succeeded."""
        self._add("invoke", self._processes, kind, asked)
        self._add("ok", self._processes, kind, told)
        self._processes += 1

    def _end(self, client: Client, how: OpType) -> None:
        kind, number = client.requests[client.asked - 1]
        self._add(how, client.process, kind, _asked(kind, number))
        if how == "info":
            client.process, self._processes = self._processes, self._processes + 1

    def _add(self, how: OpType, process: int, kind: str, value: object) -> None:
        if kind in ("send", "poll"):
            at = len(self.ops)
            self.ops.append(Op(at, at * 1_000_000, how, process, kind, value))


def _asked(kind: str, number: int = 0) -> object:
    """The value of an operation that has no result."""
    return [[SEND, KEY, number]] if kind == "send" else [[POLL]]
