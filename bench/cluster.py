"""The nodes of a run: started and initialised, and, when a fault asks for it, killed, paused and replaced.

A node that is killed is gone from the network: messages to it are lost. One that is restarted is
initialised again, by a fresh client, as at the start.

The cluster has as many places as it had nodes at the start. When a node leaves, its place is empty until a
new node joins there, under a name that no node had before. An `init` names the nodes that are members then.

A host runs one node, and carries lines to and from it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import orjson

from bench.failure import RunFailure, clip, indent
from bench.loop import Loop
from bench.net import HAD_INIT, Deliver, Departure, Network, advice, sentence
from bench.services import same
from bench.verdict.silence import DEST, Pipes, Why, why_silent
from runs.facts import grouped
from runs.traffic import is_client
from workloads.interface import shown

OnLine = Callable[[str, bytes], None]  # (node, a line it printed, without its newline)
OnFailure = Callable[[RunFailure], None]


class Host(Protocol):
    """One node."""

    name: str

    def start(self) -> None:
        """Start the node (`RunFailure` when it cannot be started)."""

    def deliver(self, message: bytes) -> None:
        """Give the node one message, without a newline; lost when the node is killed."""

    def kill(self) -> None:
        """End the node at once (SIGKILL). Its memory is lost, and so are messages to and from it."""

    def restart(self) -> None:
        """Start a killed node again: the same name, an empty memory (`RunFailure` when it cannot be)."""

    def pause(self) -> None:
        """Stop the node (SIGSTOP). Messages to it wait. Does nothing to a killed node."""

    def resume(self) -> None:
        """Continue a paused node (SIGCONT). It gets the messages that waited."""

    def postmortem(self) -> str:
        """The node's exit status and its last output, for a report."""

    def pipes(self) -> Pipes:
        """What lies in the node's pipes now."""


class Hosts(Protocol):
    """All nodes of a run."""

    def prepare(self) -> Sequence[Host]:
        """All of them, none of which is started."""

    def add(self, name: str) -> Host:
        """One more, which is not started."""

    def stop(self) -> None:
        """Stop them all and whatever they started. Never fails, and may be called at any time."""


# ---------------------------------------------------------------- the cluster


INIT_LIMIT_S = 10
_INIT_OK = {"type": "init_ok", "in_reply_to": 1}
_INIT_LIMIT_NS = INIT_LIMIT_S * 1_000_000_000


@dataclass(eq=False)
class Cluster:
    """Hosts by name and their states.

    `nodes` are those at the start. `new_client` names a client; `fail` ends the run when a node does not
    answer `init`; `make` makes the host of a node that joins.
    """

    nodes: Sequence[str]
    loop: Loop
    network: Network
    new_client: Callable[[], str]
    fail: Callable[[RunFailure], None]
    make: Callable[[str], Host]

    def __post_init__(self) -> None:
        self.names = [*self.nodes]  # by place; an empty one has the name of the node that left it
        self._replacing: dict[str, str] = {}  # a node that left -> the one that is to join there
        numbered = map("n{}".format, count(len(self.names)))
        self._fresh = (name for name in numbered if name not in self.nodes)
        self._hosts: dict[str, Host] = {}
        self._killed: set[str] = set()
        self._paused: set[str] = set()
        self._waiting: dict[str, str] = {}  # node -> the client that waits for its init_ok
        self._patience_ns: dict[str, int] = {}  # until when a node may take to answer init

    def start(self, hosts: Sequence[Host], after_ns: Callable[[], int]) -> None:
        """Attach nodes to the network, and start and initialise each when its `after_ns()` has passed."""
        for host in hosts:
            self._attach(host)
        now_ns = self.loop.now_ns()
        due = grouped((now_ns + after_ns(), host) for host in hosts)
        self._plan(sorted(due.items()))

    def _attach(self, host: Host) -> None:
        self._hosts[host.name] = host
        self._waiting[host.name] = ""
        self.network.add(host.name, _giver(host))

    def _plan(self, due: list[tuple[int, list[Host]]]) -> None:
        if due:
            self.loop.call_at(max(due[0][0], self.loop.now_ns()), self._begin, due)

    def _begin(self, due: list[tuple[int, list[Host]]]) -> None:
        """Start the nodes that are due first, and plan the others for a later turn.

        Making a process takes milliseconds, and messages leave at the end of a turn. If all were started in one
        turn, all would get their `init` together.
        """
        for host in due[0][1]:
            self._launch(host)
        self._plan(due[1:])

    def _launch(self, host: Host) -> None:
        host.start()
        self._initialise(host)

    @property
    def ready(self) -> bool:
        """Whether every node was initialised and has answered."""
        return not self._waiting

    def is_starting(self, name: str) -> bool:
        """Whether a node has still to answer its `init`."""
        return name in self._waiting

    @property
    def serving(self) -> list[str]:
        """The nodes that live, are not paused, and have answered `init`."""
        out = self._killed | self._paused | self._waiting.keys()
        return [name for name in self.members if name not in out]

    @property
    def members(self) -> list[str]:
        """The nodes that are there, killed and paused ones among them, by place."""
        return [name for name in self.names if name not in self._replacing]

    def at(self, place: int) -> str:
        """The node that serves the clients of a place: of an empty place, the next that is there."""
        while self.names[place] in self._replacing:
            place = (place + 1) % len(self.names)
        return self.names[place]

    def leave(self, name: str) -> str:
        """End a member for good. Returns the name of the node that `join` will start in its place."""
        if name not in self._killed:
            self.kill(name)
        self._killed.discard(name)
        self._replacing[name] = next(self._fresh)
        return self._replacing[name]

    def join(self) -> list[str]:
        """Start a new node in each empty place (`RunFailure` when that fails). Returns their names."""
        replacing, self._replacing = self._replacing, {}
        self.names[:] = [replacing.get(name, name) for name in self.names]
        for name in replacing.values():
            host = self.make(name)
            self._attach(host)
            self._launch(host)
        return [*replacing.values()]

    def kill(self, name: str) -> None:
        """Kill a living node at once; its memory is lost."""
        self._hosts[name].kill()
        self.network.remove(name)
        self._killed.add(name)
        self._paused.discard(name)
        self._waiting.pop(name, None)

    def restart(self, name: str) -> None:
        """Start a killed node again (`RunFailure` when that fails)."""
        host = self._hosts[name]
        host.restart()
        self._killed.discard(name)
        self.network.add(name, _giver(host))
        self._initialise(host)

    def pause(self, name: str) -> None:
        self._hosts[name].pause()
        self._paused.add(name)

    def resume(self, name: str) -> None:
        self._hosts[name].resume()
        self._paused.discard(name)
        self._await_init(self._hosts[name], self._waiting.get(name, ""))

    @property
    def killed(self) -> list[str]:
        """In the order of their names."""
        return [name for name in self.names if name in self._killed]

    @property
    def paused(self) -> list[str]:
        """In the order of their names."""
        return [name for name in self.names if name in self._paused]

    def pipes(self) -> dict[str, Pipes]:
        """What lies in the pipes of each node that was not killed."""
        started = (name for name in self.members if name not in self._killed)
        return {name: self._hosts[name].pipes() for name in started if name in self._hosts}

    def why_silent(self, name: str, request: str) -> Why:
        """Why a node has not answered a request of this type."""
        if mute := self.network.hearing.mute.get(name):
            return Why(sentence(mute.value, mute.time_ns), advice(mute.value))
        wire = self.network.latest.get(name)
        last = None if wire is None else orjson.loads(wire)
        asker = self._waiting.get(name)
        if last and asker and is_client(last["dest"]) and last["dest"] != asker:
            return Why(f"{asker} asked {name}, and it answered {last['dest']}", DEST)
        return why_silent(name, request, last, self._hosts[name].pipes())

    def _initialise(self, host: Host) -> None:
        client = self.new_client()
        self._waiting[host.name] = client

        def deliver(_src: str, body: dict[str, Any], _wire: bytes) -> None:
            wrong = [each for each in _INIT_OK if not same(body.get(each), _INIT_OK[each])]
            if wrong:
                self.fail(_bad_init(host.name, body, wrong[0]))
            if self._waiting.get(host.name) == client:
                del self._waiting[host.name]
            self.network.leave(client, Departure(self.loop.now_ns(), HAD_INIT))

        self.network.add(client, deliver)
        self._await_init(host, client)
        body = {"type": "init", "node_id": host.name, "node_ids": self.members, "msg_id": 1}
        self.network.send(client, host.name, body)

    def _await_init(self, host: Host, client: str) -> None:
        """From now on a node has its whole time to answer the `init` of this client, if that waits."""
        self._patience_ns[host.name] = self.loop.now_ns() + _INIT_LIMIT_NS
        self.loop.call_at(self._patience_ns[host.name], self._expire, host, client)

    def _expire(self, host: Host, client: str) -> None:
        """The time for an init is over; a node that was paused meanwhile has it again from its end on."""
        is_over = self.loop.now_ns() >= self._patience_ns[host.name]
        if self._waiting.get(host.name) != client or host.name in self._paused or not is_over:
            return
        self.fail(
            RunFailure(
                f"Node {host.name} did not answer its init message within {INIT_LIMIT_S} s.\n"
                f"{self.why_silent(host.name, 'init')}\n"
                f"An answer has the body {json.dumps(_INIT_OK)}.\nThe node: {host.postmortem()}"
            )
        )


def _giver(host: Host) -> Deliver:
    """Gives a node its messages, `init` first: what others send it before that waits."""
    early: list[bytes] | None = []

    def deliver(_src: str, body: dict[str, Any], wire: bytes) -> None:
        nonlocal early
        if early is None:
            host.deliver(wire)
        elif body.get("type") != "init":
            early.append(wire)
        else:
            for message in (wire, *early):
                host.deliver(message)
            early = None

    return deliver


def _bad_init(node: str, body: dict[str, Any], wrong: str) -> RunFailure:
    """The report on an answer to `init` in which the field `wrong` is wrong."""
    has = f"`{wrong}` {shown(body[wrong])}" if wrong in body else f"no `{wrong}`"
    return RunFailure(
        f"Node {node} answered its init message with {has}, and it must be {shown(_INIT_OK[wrong])}. The"
        f" body should be\n{indent(json.dumps(_INIT_OK))}\nbut is\n{indent(clip(json.dumps(body)))}"
    )
