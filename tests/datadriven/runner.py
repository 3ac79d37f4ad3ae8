"""Plays a transcript: prose, commands (`> ...`), and below each command what it made happen.

    > nodes n0 n1 [strategy=cas] [combine=off] [freshness=90]   start nodes, a fresh store and the clock at 0
    > nodes n0 commits=deferred     the same, and committed offsets wait for a batch
    > nodes n0 limits=small         the same, and segments hold two entries, runs two segments from now on
    > c1 n0 send {"key":"k","msg":1}   a client's request to a node
    > deliver 1 3                   let messages arrive, in this order; their numbers are printed with `#`
    > drop 2                        lose messages
    > copy 2                        a message arrives twice: here is its copy
    > settle                        deliver everything until nothing is in flight
    > wait 1000                     let milliseconds pass; timers fire
    > restart n0                    kill a node and start it again; what is in flight stays so
    > raw n0 not even JSON          a line as it is
    > flying                        what is in flight
    > store                         what the store's registers hold

A message is printed as `#number sender -> receiver type {fields}`; one to a client has no number, since it
arrives at once. Ids of messages are left out: the numbers tell which call an answer belongs to.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from bench.nemesis.store_faults import STORE
from leaderless.core.limits import Limits
from simulation.nodes import LINEARIZABLE
from tests.compacting import SHAPE, SMALL
from tests.stepped import Flying, SteppedCluster

INDENT = "  "
# The service's own texts name the values, which the transcript shows anyway.
TEXTS = {20: "no such key", 22: "it holds something else"}


class Transcript:
    """Carries commands out on one cluster."""

    def __init__(self) -> None:
        self._cluster: SteppedCluster
        self._commands: dict[str, Callable[[list[str]], list[str]]] = {
            "nodes": self._nodes,
            "deliver": self._deliver,
            "drop": self._drop,
            "copy": lambda words: _shown([self._cluster.copy(int(words[0]))]),
            "settle": lambda _: _shown(self._cluster.settle()),
            "wait": lambda words: _shown(self._cluster.pass_time(int(words[0]) / 1000)),
            "restart": lambda words: _shown(self._cluster.start(words[0])),
            "raw": lambda words: _shown(self._cluster.raw(words[0], " ".join(words[1:]).encode())),
            "flying": lambda _: _shown(self._cluster.flying.values()),
            "store": lambda _: [
                f"{register} = {_json(value)}"
                for register, value in sorted(self._cluster.store.registers.items())
            ],
        }

    def play(self, text: str) -> str:
        """The transcript with what its commands make happen now in place of what stands there."""
        lines: list[str] = []
        below_command = False
        for line in text.splitlines():
            if line.startswith("> "):
                lines += [line, *(INDENT + effect for effect in self._command(line[2:]))]
                below_command = True
            elif not (below_command and line.startswith(INDENT)):
                lines.append(line)
                below_command = False
        return "\n".join(lines) + "\n"

    def _command(self, command: str) -> list[str]:
        name, *words = command.split()
        try:
            known = self._commands.get(name)
            effects = known(words) if known else self._request(command)
        except KeyError as number:
            return [f"#{number} is not in flight"]
        return effects or ["nothing"]

    def _nodes(self, words: list[str]) -> list[str]:
        chosen = dict(word.split("=") for word in words if "=" in word)
        small = chosen.pop("limits", "") == "small"
        options = LINEARIZABLE._replace(
            limits=SMALL if small else Limits(),
            shape=SHAPE if small else None,
            combine=chosen.pop("combine", "on") == "on",
            durable_commits=chosen.pop("commits", "durable") == "durable",
            freshness_s=float(chosen.pop("freshness", 0)) / 1000,
        )
        names = [word for word in words if "=" not in word]
        self._cluster = SteppedCluster(names, chosen.pop("strategy", "cas"), options)
        assert not chosen, f"unknown: {chosen}"
        return [f"{', '.join(self._cluster.names)} serve"]

    def _request(self, command: str) -> list[str]:
        client, node, kind, *fields = command.split(maxsplit=3)
        body = {"type": kind, **json.loads(fields[0] if fields else "{}")}
        return _shown(self._cluster.request(client, node, body))

    def _deliver(self, words: list[str]) -> list[str]:
        sent = [message for word in words for message in self._cluster.deliver(int(word))]
        return _shown(sent)

    def _drop(self, words: list[str]) -> list[str]:
        for word in words:
            self._cluster.drop(int(word))
        return [f"lost: {' '.join('#' + word for word in words)}"]


def _shown(messages: Iterable[Flying]) -> list[str]:
    return [_line(message) for message in messages]


def _line(message: Flying) -> str:
    hidden = ("type", "msg_id", "in_reply_to")
    fields = {name: value for name, value in message.body.items() if name not in hidden}
    if message.src == STORE and "text" in fields:
        fields["text"] = TEXTS[fields["code"]]
    number = f"#{message.number} " if message.number else ""
    shown = f" {_json(fields)}" if fields else ""
    return f"{number}{message.src} -> {message.dest} {message.body['type']}{shown}"


def _json(value: Any) -> str:
    return json.dumps(_without_shape(value), separators=(",", ":"))


def _without_shape(value: Any) -> Any:
    """A value without the shape in its heads: nine numbers that are the same all along."""
    if not isinstance(value, dict):
        return value
    return {name: _without_shape(part) for name, part in value.items() if name != "shape"}
