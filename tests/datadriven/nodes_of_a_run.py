"""Plays a transcript of the nodes of a run, on a virtual clock: who serves, who is initialised, who is gone.

    > nodes n0 n1 think=0.5         they answer `init` after so many seconds, unless they are paused meanwhile;
                                    n0 is initialised now
    > kill n0                       and `restart`, `pause`, `resume`, `leave`; `join` of all who are to come
    > pass 10.5                     so many seconds pass
    > to n0 {"type":"read_ok"}      a message of the store to a node
    > from n2 {"src":...}           a line that a node writes
    > at 0                          who serves the clients of a place
    > did n0                        what was done to its host
    > inbox n0                      the last line that it got

Below stand what a command returns, the nodes that serve, are killed or paused, whether all who run serve, and
why the run has failed.
"""

import io
from collections.abc import Callable
from typing import Any

import orjson

from bench.cluster import Cluster
from bench.loop import VirtualLoop
from bench.net import Network
from bench.verdict.silence import Pipes
from bench.worker import client_names
from runs.writing import Journal
from tests.datadriven.runner import Player, chosen_of
from tests.passing import pass_until

SECOND = 1_000_000_000


class FakeHost:
    """Answers `init` after `think_s` unless it is paused meanwhile; notes everything."""

    def __init__(self, name: str, run: "NodesOfARun", think_s: float) -> None:
        self.name, self.run, self.think_s = name, run, think_s
        self.did: list[Any] = []
        self.inbox: list[Any] = []
        self.paused, self.life = False, 0

    def deliver(self, message: bytes) -> None:
        self.inbox.append(message)
        if b'"init"' in message:
            self.run.later(self.think_s, self.answer, self.life)

    def answer(self, life: int) -> None:
        if life != self.life:
            return
        if self.paused:
            self.run.later(1, self.answer, life)
            return
        client = f"c{self.run.inits - 1}"
        line = '{"src":"%s","dest":"%s","body":{"type":"init_ok","in_reply_to":1}}'
        self.run.network.send_line(self.name, (line % (self.name, client)).encode())

    def start(self) -> None:
        self.did.append("start")

    def kill(self) -> None:
        self.did.append("kill")
        self.life += 1

    def restart(self) -> None:
        self.did.append("restart")
        self.paused = False

    def pause(self) -> None:
        self.did.append("pause")
        self.paused = True

    def resume(self) -> None:
        self.did.append("resume")
        self.paused = False

    def postmortem(self) -> str:
        return "a fake"

    def pipes(self) -> Pipes:
        return Pipes()


class NodesOfARun(Player):
    """Carries commands out on one cluster of a bench."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[str, FakeHost] = {}
        self.commands |= {
            "nodes": self._nodes,
            "pass": self._pass,
            "to": lambda words: self._sent("lin-kv", words[0], orjson.loads(words[1])),
            "from": lambda words: self._wrote(words[0], words[1].encode()),
            "did": lambda words: [", ".join(self.hosts[words[0]].did)],
            "inbox": lambda words: [self.hosts[words[0]].inbox[-1].decode().strip()],
        }

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        self.inits += name == "restart"
        given = (int(word) if word.isdigit() else word for word in words)
        returned = getattr(self.cluster, name)(*given)
        return [*([] if returned is None else [str(returned)]), *self._state()]

    def make(self, name: str, think_s: float = 0.5) -> Any:
        """A host; one that joins is initialised at once."""
        self.inits += name not in self.names
        self.hosts[name] = FakeHost(name, self, think_s)
        return self.hosts[name]

    def later(self, wait_s: float, function: Callable[..., Any], *arguments: int) -> None:
        self._loop.call_at(self._loop.now_ns() + int(wait_s * SECOND), function, *arguments)

    def _nodes(self, words: list[str]) -> list[str]:
        self._loop = VirtualLoop()
        self.network = Network(self._loop, Journal(io.BytesIO()), lambda: 0)
        self.network.add("lin-kv", lambda *_: None)
        self._failures: list[Any] = []
        self.names = tuple(word for word in words if "=" not in word)
        clients, fail = client_names(), self._failures.append
        self.cluster = Cluster(self.names, self._loop, self.network, clients, fail, self.make)
        self.inits = 1
        think_s = float(chosen_of(words).get("think", 0.5))
        hosts = [self.make(name, think_s) for name in self.names]
        self.cluster.start(hosts[:1], lambda: 0)  # so that it is clear whose init is whose
        return self._pass(["0"])

    def _pass(self, words: list[str]) -> list[str]:
        pass_until(self._loop, self._loop.now_ns() + int(float(words[0]) * SECOND))
        return self._state()

    def _sent(self, src: str, dest: str, body: Any) -> list[str]:
        self.network.send(src, dest, body)
        return [f"{self.network.servers.received} messages were received"]

    def _wrote(self, name: str, line: bytes) -> list[str]:
        self.network.send_line(name, line)
        return [f"mute: {[*self.network.hearing.mute]}"]

    def _state(self) -> list[str]:
        cluster = self.cluster
        ready = "ready" if cluster.ready else "not ready"
        states = f"serving {cluster.serving}, killed {cluster.killed}, paused {cluster.paused}"
        return [f"{ready}: {states}", *(str(each).splitlines()[0] for each in self._failures)]
