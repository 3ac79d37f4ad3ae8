"""Plays a transcript: prose, commands (`> ...`), and below each command what it made happen.

    > nodes n0 n1 [strategy=cas] [combine=off] [freshness=90]   start nodes, a fresh store and the clock at 0
    > nodes n0 strategy=lanes       the log with a policy of below: `lingering`, `lanes`; see `founders`, too
    > nodes n3 of=16 store=same     one node of sixteen, whose others are absent, on the store of before
    > nodes n0 commits=deferred     the same, and committed offsets wait for a batch
    > nodes n0 limits=small         the same, and segments hold two entries, runs two segments from now on
    > nodes n0 seal=2 keys=8 waiting=1000   a tail is full with two entries; offsets of eight keys are kept
                                  beside the log; sends of 1000 bytes may wait
    > c1 n0 send {"key":"k","msg":1}   a client's request to a node
    > deliver 1 3                   let messages arrive, in this order; their numbers are printed with `#`
    > drop 2                        lose messages
    > copy 2                        a message arrives twice: here is its copy
    > settle                        deliver everything until nothing is in flight
    > run 200 10                    the same for 200 ms, every 10 ms; only what clients hear is shown
    > wait 1000                     let milliseconds pass; timers fire
    > remember contended            all commands since `nodes` are called so
    > replay contended              carry them out again, and show nothing of it
    > repeat 3 COMMAND              a command three times; `$` in it is 0, 1 and 2
    > restart n0                    kill a node and start it again; what is in flight stays so
    > raw n0 not even JSON          a line as it is
    > forge c9 n0 share {}          a message in anybody's name
    > flying hand_over              what is in flight of this type; all without a type
    > store head                    what a register holds; all without a name
    > put head {...}                what it holds now

`settle` and `run` leave in flight what `except=` names, lose what `lose=` names, and let the store answer all
with an error for `refuse=CODE`, or what has more characters than `above=`. A message is named by its number,
its type, its register, or its receiver; `deliver` and `drop` take such names too.

A message is printed as `#number sender -> receiver type {fields}`; one to a client has no number, since it
arrives at once. Ids of messages are left out: the numbers tell which call an answer belongs to. `"x*3000"` is a
text of so many x.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.nemesis.requests import STORE
from leaderless.core.headlog.policy import CommitPolicy
from leaderless.core.limits import Limits
from leaderless.core.messages import Put
from leaderless.core.shape import Shape
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategy import Context
from simulation.nodes import LINEARIZABLE, StrategyMaker
from tests.compacting import SHAPE, SMALL
from tests.stepped import STEPS_MAX, Flying, SteppedCluster

INDENT, NOTHING = "  ", "nothing"


class Lingering(CommitPolicy):
    """Commits all itself, and waits for company each time."""

    def target(self, asked: int = 0) -> None:
        return None

    def company_until(self, since: float) -> float:
        return since + 0.01


class InManyLanes(CommitPolicy):
    """Begins a batch for each send, and waits as long for each peer."""

    hedge_s = 0.05

    def needs_lane(self, waiting: int) -> bool:
        return waiting > 0


def founder(context: Context) -> LeaderlessLog:
    """A node that would make a log with a shape of its own: n0 with tails of two entries, n1 of hundred."""
    shape = Shape(seal_entries=2 if context.identity.node == "n0" else 100)
    return LeaderlessLog(context._replace(options=context.options._replace(shape=shape)))


STRATEGIES: dict[str, StrategyMaker] = {
    "founders": founder,
    "lingering": lambda context: LeaderlessLog(context, Lingering),
    "lanes": lambda context: LeaderlessLog(context, InManyLanes),
}
# The service's own texts name the values, which the transcript shows anyway.
TEXTS = {20: "no such key", 22: "it holds something else"}


def expanded(command: str) -> str:
    """A command with the texts of so many x."""
    return re.sub(r'"x\*(\d+)"', lambda size: f'"{"x" * int(size[1])}"', command)


def cases_of(path: Path) -> dict[str, str]:
    """The sections of a transcript, by their headings."""
    sections = path.read_text().split("\n# ")[1:]
    return {section.partition("\n")[0]: f"{section.strip()}\n" for section in sections}


class Player:
    """Plays transcripts: `commands` are carried out with the words behind them, `otherwise` all other ones."""

    def __init__(self) -> None:
        self.commands: dict[str, Callable[[list[str]], list[str]]] = {}

    def play(self, text: str) -> str:
        """The transcript with what its commands make happen now in place of what stands there."""
        lines: list[str] = []
        below_command = False
        for line in text.splitlines():
            if line.startswith("> "):
                lines += [line, *(INDENT + effect for effect in self.command(line[2:]))]
                below_command = True
            elif not (below_command and line.startswith(INDENT)):
                lines.append(line)
                below_command = False
        return "\n".join(lines) + "\n"

    def command(self, command: str) -> list[str]:
        """What a command makes happen."""
        name, *words = expanded(command).split()
        known = self.commands.get(name)
        return (known(words) if known else self.otherwise(name, words)) or [NOTHING]

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        """A command that is none of `commands`."""
        raise NotImplementedError


class AsyncPlayer(Player):
    """Plays transcripts on an event loop that runs."""

    def __init__(self) -> None:
        super().__init__()
        self._effects: list[str] = []

    async def told(self, command: str) -> str:
        """What a command makes happen, in lines."""
        raise NotImplementedError

    async def played(self, text: str) -> str:
        """As `play`."""
        commands = [line[2:] for line in text.splitlines() if line.startswith("> ")]
        self._effects = [await self.told(expanded(command)) for command in commands]
        return super().play(text)

    def command(self, command: str) -> list[str]:
        return self._effects.pop(0).splitlines() or [NOTHING]


class Transcript(Player):
    """Carries commands out on one cluster."""

    def __init__(self) -> None:
        super().__init__()
        self._cluster: SteppedCluster
        self._played: list[str] = []  # since `nodes`, and it
        self._remembered: dict[str, list[str]] = {}
        self.commands |= {
            "nodes": self._nodes,
            "deliver": self._deliver,
            "drop": self._drop,
            "copy": lambda words: _shown([self._cluster.copy(int(words[0]))]),
            "settle": lambda words: _shown(self._arrive(chosen_of(words))),
            "run": self._run,
            "remember": self._remember,
            "replay": self._replay,
            "wait": lambda words: _shown(self._cluster.pass_time(int(words[0]) / 1000)),
            "restart": lambda words: _shown(self._cluster.start(words[0])),
            "raw": lambda words: _shown(self._cluster.raw(words[0], " ".join(words[1:]).encode())),
            "forge": lambda words: _shown(
                self._cluster.forge(words[0], words[1], _body(*words[2:]))
            ),
            "flying": lambda words: _shown(self._named(words)),
            "repeat": lambda words: [
                effect
                for number in range(int(words[0]))
                for effect in self.command(" ".join(words[1:]).replace("$", str(number)))
                if effect != NOTHING
            ],
            "put": self._put,
            "store": lambda words: registers_of(self._cluster.store.registers, words),
        }

    def command(self, command: str) -> list[str]:
        self._played.append(command)
        try:
            return super().command(command)
        except KeyError as number:
            return [f"#{number} is not in flight"]

    def otherwise(self, name: str, words: list[str]) -> list[str]:
        node, kind, *fields = words
        return _shown(self._cluster.request(name, node, _body(kind, *fields)))

    def _remember(self, words: list[str]) -> list[str]:
        self._remembered[words[0]] = self._played[1:-1]
        return []

    def _replay(self, words: list[str]) -> list[str]:
        for command in self._remembered[words[0]]:
            self.command(command)
        return []

    def _nodes(self, words: list[str]) -> list[str]:
        chosen = chosen_of(words)
        small = chosen.pop("limits", "") == "small"
        sealed = int(chosen.pop("seal", 0))
        limits = replace(
            SMALL if small else Limits(),
            committed_keys=int(chosen.pop("keys", Limits().committed_keys)),
            waiting_bytes=int(chosen.pop("waiting", Limits().waiting_bytes)),
        )
        options = LINEARIZABLE._replace(
            limits=limits,
            shape=SHAPE if small else Shape(seal_entries=sealed) if sealed else None,
            combine=chosen.pop("combine", "on") == "on",
            durable_commits=chosen.pop("commits", "durable") == "durable",
            freshness_s=float(chosen.pop("freshness", 0)) / 1000,
        )
        names = [word for word in words if "=" not in word]
        absent = {f"n{number}" for number in range(int(chosen.pop("of", 0)))} - {*names}
        strategy = chosen.pop("strategy", "cas")
        self._cluster = SteppedCluster(
            names,
            STRATEGIES.get(strategy, strategy),
            options,
            store=self._cluster.store if chosen.pop("store", "") == "same" else None,
            absent=sorted(absent),
        )
        assert not chosen, f"unknown: {chosen}"
        self._played = self._played[-1:]
        return [f"{', '.join(self._cluster.names)} serve"]

    def _put(self, words: list[str]) -> list[str]:
        self._cluster.store.apply(Put(words[0], json.loads(" ".join(words[1:]))))
        return []

    def _deliver(self, words: list[str]) -> list[str]:
        """Messages by name, in the order of the names."""
        sent: list[Flying] = []
        for word in words:
            for message in self._named([word]):
                sent += self._cluster.deliver(message.number)
        return _shown(sent)

    def _drop(self, words: list[str]) -> list[str]:
        lost = self._named(words)
        for message in lost:
            self._cluster.drop(message.number)
        return [f"lost: {' '.join(f'#{message.number}' for message in lost)}"]

    def _named(self, words: list[str]) -> list[Flying]:
        """What is in flight by these names; all without one. Raises `KeyError` for a number that is not."""
        flying = self._cluster.flying
        for word in filter(str.isdigit, words):
            flying[int(word)]
        return [message for message in flying.values() if not words or _is_named(message, words)]

    def _arrive(self, chosen: dict[str, str]) -> list[Flying]:
        """Whatever may arrive does, until nothing is left."""
        cluster, sent = self._cluster, list[Flying]()
        kept, lost = (chosen.get(name, "").split(",") for name in ("except", "lose"))
        above = int(chosen.get("above", 0))
        for _ in range(STEPS_MAX):
            free = [each for each in cluster.flying.values() if not _is_named(each, kept)]
            if not free:
                return sent
            message = free[0]
            if _is_named(message, lost):
                cluster.drop(message.number)
            elif message.dest == STORE and "refuse" in chosen and len(str(message.body)) > above:
                cluster.drop(message.number)
                error = {"type": "error", "code": int(chosen["refuse"])}
                error["in_reply_to"] = message.body["msg_id"]
                line = {"src": STORE, "dest": message.src, "body": error}
                sent += cluster.raw(message.src, json_of(line).encode())
            else:
                sent += cluster.deliver(message.number)
        raise AssertionError(f"messages are still in flight after {STEPS_MAX} deliveries")

    def _run(self, words: list[str]) -> list[str]:
        span_ms, every_ms = map(int, words[:2])
        sent = self._arrive(chosen := chosen_of(words))
        for _ in range(span_ms // every_ms):
            sent += self._cluster.pass_time(every_ms / 1000)
            sent += self._arrive(chosen)
        heard = _shown(message for message in sent if not message.number)
        asked = sum(message.dest == STORE for message in sent)
        return [*heard, f"the store was asked {asked} times"] if "refuse" in chosen else heard


def registers_of(registers: dict[str, Any], names: list[str]) -> list[str]:
    """What registers hold, of these names; of all without a name."""
    return [
        f"{register} = {json_of(value)}"
        for register, value in sorted(registers.items())
        if register in names or not names
    ]


def chosen_of(words: list[str]) -> dict[str, str]:
    """The words of a command that say NAME=VALUE."""
    return dict(word.split("=") for word in words if "=" in word)


def _body(kind: str, *fields: str) -> dict[str, Any]:
    return {"type": kind, **json.loads(" ".join(fields) or "{}")}


def _is_named(message: Flying, names: list[str]) -> bool:
    body = message.body
    return not {str(message.number), message.dest, body["type"], body.get("key")}.isdisjoint(names)


def _shown(messages: Iterable[Flying]) -> list[str]:
    return [_line(message) for message in messages]


def _line(message: Flying) -> str:
    hidden = ("type", "msg_id", "in_reply_to", "limits", "pace")
    fields = {name: value for name, value in message.body.items() if name not in hidden}
    if message.src == STORE and "text" in fields:
        fields["text"] = TEXTS[fields["code"]]
    number = f"#{message.number} " if message.number else ""
    shown = f" {json_of(fields)}" if fields else ""
    return f"{number}{message.src} -> {message.dest} {message.body['type']}{shown}"


def json_of(value: Any) -> str:
    """A value as it is printed."""
    text = json.dumps(_without_shape(value), separators=(",", ":"))
    return re.sub("x{50,}", lambda found: f"x*{len(found[0])}", text)


def _without_shape(value: Any) -> Any:
    """A value without the shape in its heads: nine numbers that are the same all along."""
    if not isinstance(value, dict):
        return value
    return {name: _without_shape(part) for name, part in value.items() if name != "shape"}
