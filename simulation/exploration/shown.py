"""What a reader sees of an explored cluster: registers, nodes, clients, messages, and what the laws say."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bench.nemesis.faults import STORE
from bench.pages.explorer import Card, Happening, Verdict
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.wire.bodies import ErrorCode
from simulation.exploration.clients import KEY, LOST, Client
from simulation.exploration.events import Event
from simulation.exploration.schedule import ExploredCluster
from simulation.exploration.search import Failing
from simulation.exploration.setting import Setting
from simulation.exploration.telling import FAULTS, said
from simulation.nodes import NodeSession
from simulation.oracle import Body

PANES = ("Store", "Nodes", "Clients", "Messages on their way", "Time and faults")
TEXT_MAX = 400
NEVER_CHANGE = frozenset(
    ("_others", "_block", "_size", "_followers", "_leader", "_leads", "_writer")
)
HIDDEN = frozenset(("type", "msg_id", "in_reply_to", "shape", "size"))  # of bodies and values
END = "every node serves once more and is polled from the beginning; the checker judges the history"
ERRORS = {  # what the store says, in few words
    ErrorCode.KEY_DOES_NOT_EXIST: "there is no such key",
    ErrorCode.PRECONDITION_FAILED: "it holds something else",
}
FAULTS_LEFT = {
    "lose": "messages may be lost",
    "double": "messages may double",
    "kill": "nodes may die",
    "late": "time may pass early",
    "cut": "nodes may be cut off",
}
LAWS = {
    "AckedExactlyOnce": "an acknowledged message is in the log, once, at its offset",
    "ViewIsPrefix": "what a node shows is the beginning of the log",
    "PollContiguous": "a poll leaves no offset out, and none comes behind it",
    "PollFresh": "a poll shows what was acknowledged before it was asked",
    "RejectedNeverAppended": "what was refused for good never gets into the log",
    "AnsweredOnce": "a request gets one answer at most",
}
LAWS_OF_THE_HEAD = {
    "OffsetsDense": "a batch begins at the offset where its key ended",
    "HeadNeverReturns": "the head never has a value that it had before",
    "CommittedReadable": "what was committed can be read",
    "RefinesHeadLog": "each step is one that the model may take",
}
LAWS_OF_OPTIONS = {
    "fence": {"NoAppendWhileFenced": "nothing is appended while the log is fenced"},
    "compaction": {
        "SegmentsImmutable": "a sealed segment never changes",
        "OneLiveClaim": "a claim is not taken from a worker that lives",
        "CursorNeverPassesCompacted": "what the cursor has passed stands in runs",
    },
    "commits": {"CommitsKept": "a committed offset never goes back"},
}
TEXTS = {
    law: text
    for its in (LAWS, LAWS_OF_THE_HEAD, *LAWS_OF_OPTIONS.values())
    for law, text in its.items()
}


class Look(NamedTuple):
    """A state: the cards of its panes, and what tells what an event did to messages.

    `bodies`: of the messages on their way, by name; `clients`: of each its node, its requests, how many of
    them it has made, and its answers; `cut_off`: the node that is cut off.
    """

    panes: tuple[tuple[Card, ...], ...]
    bodies: Mapping[str, Body]
    clients: Mapping[str, tuple[str, tuple[tuple[str, int], ...], int, tuple[Body, ...]]]
    cut_off: str = ""


class ClusterLooks:
    """Looks at states of a setting. A node's card follows from its memory, and is made once."""

    panes = PANES

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._cards: dict[tuple[str, bytes, int], Card] = {}

    def __call__(self, system: Any) -> Look:
        """Look at a state."""
        cluster: ExploredCluster = system
        clients = cluster.history.clients.values()
        bodies = cluster.messages()
        panes = (
            tuple(map(_register, sorted(cluster.store.registers.items()))),
            tuple(self._node(cluster, node) for node in self._setting.names),
            tuple(map(_client, clients)),
            tuple(_message(name, body) for name, body in sorted(bodies.items())),
            (_budget(cluster),),
        )
        asked = {c.name: (c.node, c.requests, c.asked, _answers(c)) for c in clients}
        return Look(panes, bodies, asked, cluster.cut_off)

    def _node(self, cluster: ExploredCluster, node: str) -> Card:
        key = node, cluster.memory_of(node), cluster.life(node)
        if key not in self._cards:
            life = [("life", str(key[2]))] if key[2] > 1 else []
            facts = (*life, *cluster.look(node, _facts), *_timer(cluster, node))
            self._cards[key] = Card(node, facts)
        return self._cards[key]

    def verdicts(self, failed: Failing | None, *, end: bool) -> tuple[Verdict, ...]:
        """The laws that are judged in each step; `failed` breaks one of them."""
        laws = [*LAWS]
        if self._setting.strategy == "leaderless":
            laws += LAWS_OF_THE_HEAD
        for option, its in LAWS_OF_OPTIONS.items():
            laws += its if getattr(self._setting, option) else ()
        return judged(laws, failed, END if end else "")

    def happening(self, event: Event, before: Look) -> Happening:
        """An event in words."""
        if event.kind == "ask":
            return Happening(f"{said(event)}: {_asked(event.what, before)}")
        body, detail = before.bodies.get(event.what), ""
        if body is not None:
            event, detail = Event(event.kind, _readable(event.what, body)), _brief(body)
        return Happening(said(event), detail, is_fault(event))

    def signals(self, event: Event, before: Look, after: Look) -> Iterator[str]:
        """What an event did to messages; see `bench.pages.explorer.Edge`."""
        if event.kind == "kill":
            yield f"!{event.what}>{event.what} killed"
        for name in (name for name in before.bodies if name not in after.bodies):
            ends = _ends(name)
            lost = event.kind == "lose" or (before.cut_off in ends and STORE not in ends)
            yield f"{'x' if lost else '-'}{name}"
        for name, (node, requests, asked, answers) in after.clients.items():
            _, _, asked_before, answers_before = before.clients[name]
            if asked > asked_before:
                yield from _at_once(f"{name}>{node} {requests[asked - 1][0]} {asked}")
            for number, answer in enumerate(answers[len(answers_before) :], len(answers_before)):
                yield from _at_once(f"{node}>{name} {answer['type']} {number}")
        yield from (f"+{name}" for name in after.bodies if name not in before.bodies)


def judged(names: Iterable[str], failed: Failing | None, end: str) -> tuple[Verdict, ...]:
    """The laws of a state, the broken one first; `end`: how it was judged as an end, if it is one."""
    laws = [Verdict(name, True, TEXTS[name]) for name in names]
    at_end = [Verdict("The end was judged", True, end)] if end else []
    if failed:
        text = failed.text.partition("\n")[0]  # a traceback follows, with paths of this machine
        broken = Verdict(failed.name, False, text)
        return broken, *at_end, *(each for each in laws if each.law != failed.name)
    return *at_end, *laws


def is_fault(event: Event) -> bool:
    """Whether an event is a fault, and not what time and messages do by themselves."""
    return event.kind in FAULTS and event != Event("wait", "next")


def _at_once(name: str) -> tuple[str, str]:
    return f"+{name}", f"-{name}"


def _ends(name: str) -> tuple[str, str]:
    src, _, dest = name.partition(" ")[0].partition(">")
    return src, dest


# ---------------------------------------------------------------- cards


def _register(item: tuple[str, Any]) -> Card:
    name, value = item
    if not isinstance(value, dict):
        return Card(name, (("value", _text(value)),))
    shown = {field: its for field, its in value.items() if field not in HIDDEN}
    entries = shown.pop("entries", None)
    facts = [(field, _text(its)) for field, its in shown.items()]
    if isinstance(entries, list):
        base = value.get("base", 0)
        facts += [(f"slot {slot}", _entry(entry)) for slot, entry in enumerate(entries, base)]
    return Card(name, tuple(facts))


def _entry(entry: list[Any]) -> str:
    """What a batch put into the log, and its name."""
    writer, seq, appends, commits = entry
    said_ = [f"{key}: {_text(msgs)} from offset {first}" for key, (first, msgs) in appends.items()]
    said_ += [f"{key} committed at {offset}" for key, offset in commits.items()]
    return f"{', '.join(said_) or 'nothing'} (batch {seq} of {writer})"


def _client(client: Client) -> Card:
    requests = ", then ".join(
        dict.fromkeys(
            f"{kind.replace('_', ' ')} {_number(kind, n)}".strip() for kind, n in client.requests
        )
    )
    facts = [("asks", f"{requests} (through {client.node})")]
    told: list[Any] = client.seen
    for each in told:
        if isinstance(each, dict):
            facts.append(("was told", _brief(each, with_type=True)))
        elif each == LOST:
            facts.append(("was told", "nothing: its node was killed, or stood still"))
    state = "waits" if client.waiting else "is done" if client.done else "may ask"
    return Card(client.name, (*facts, ("now", state)))


def _number(kind: str, number: int) -> str:
    return str(number) if kind in ("send", "commit_offsets") else ""


def _answers(client: Client) -> tuple[Body, ...]:
    told: list[Any] = client.seen
    return tuple(each for each in told if isinstance(each, dict))


def _asked(name: str, before: Look) -> str:
    node, requests, asked, _ = before.clients[name]
    kind, number = requests[asked]
    return f"{kind} {_number(kind, number)}".strip() + f", through {node}"


def _message(name: str, body: Body) -> Card:
    return Card(_readable(name, body), tuple(_fields(body)))


def _readable(name: str, body: Body) -> str:
    """A message in words: from, to, what."""
    src, dest = _ends(name)
    copy = " (again)" * (name.count("+") > 0)
    what = f"{body['type'].replace('_', ' ')} {body.get('key', '') if dest == STORE else ''}"
    if body["type"] == "error":
        what = f"“{ERRORS.get(body['code'], 'error')}”"
    return f"{src} → {dest}: {what.strip()}{copy}"


def _fields(body: Body) -> Iterator[tuple[str, str]]:
    for field, value in body.items():
        if field not in HIDDEN and field != "key":
            shown = _messages(value) if field == "msgs" else _text(value)
            yield field.replace("_", " "), shown


def _messages(msgs: Mapping[str, list[list[Any]]]) -> str:
    """Messages and their offsets: `k: 7 at 0`."""
    told = (
        f"{key}: {', '.join(f'{_text(msg)} at {offset}' for offset, msg in pairs)}"
        for key, pairs in msgs.items()
    )
    return "; ".join(told) or "no messages"


def _brief(body: Body, *, with_type: bool = False) -> str:
    fields = ", ".join(f"{field} {text}" for field, text in _fields(body))
    return f"{body['type']} {fields}".strip() if with_type else fields


def _budget(cluster: ExploredCluster) -> Card:
    left = [(FAULTS_LEFT[kind], f"{count} ×") for kind, count in cluster.left.items() if count]
    cut = [("cut off", cluster.cut_off)] if cluster.cut_off else []
    return Card("time", (("passed", f"{cluster.seconds:g} s"), *cut, *left))


def _timer(cluster: ExploredCluster, node: str) -> list[tuple[str, str]]:
    deadline = cluster.deadline_of(node)
    return [] if deadline is None else [("next timer", f"at {deadline:g} s")]


# ---------------------------------------------------------------- what a node knows


def _facts(session: NodeSession) -> list[tuple[str, str]]:
    """What a node knows: of our log its view, of another strategy whatever it keeps."""
    machine = getattr(session, "_machine", None)
    strategy = getattr(machine, "_strategy", None)
    if isinstance(strategy, LeaderlessLog):
        return _view(strategy)
    return [
        (name.strip("_").replace("_", " "), _text(plain))
        for name, value in vars(strategy).items()
        if name not in NEVER_CHANGE and (plain := _plain(value))
    ]


def _view(strategy: LeaderlessLog) -> list[tuple[str, str]]:
    view = strategy.view
    waiting, under_way, here = strategy._writer.load
    acknowledged = {w: seq for w, (seq, _) in view.placed.items() if seq >= 0}
    facts = [
        ("epoch", "not read yet" if strategy.epoch is None else str(strategy.epoch)),
        ("slots known", str(view.slot)),
        (f"next offset of {KEY}", str(view.end(KEY))),
        (f"{KEY} in memory", _text(view.messages.get(KEY, []))),
    ]
    counted = {"sends wait": waiting, "batches under way": under_way, "to commit here": here}
    facts += [(name, str(count)) for name, count in counted.items() if count]
    facts += [("own batches in the log", _text(acknowledged))] if acknowledged else []
    facts += [("committed offsets", _text(view.committed))] if view.committed else []
    return facts


def _plain(value: Any) -> Any:
    """What can be shown of an attribute: numbers and texts in containers; nothing of anything else."""
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(its) for key, its in value.items() if _plain(its) is not None}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        listed = [*value]
        first, *rest = listed or [None]
        if (
            len(rest) > 1
            and isinstance(first, int)
            and listed == [*range(first, first + len(listed))]
        ):
            return f"{first} to {listed[-1]}"
        return [_plain(each) for each in listed]
    if type(value).__name__ == "Copy":
        return _messages(value.since({KEY: 0})) if value.since({KEY: 0}) else None
    return None


def _text(value: Any) -> str:
    """A value on one line, without what says nothing here."""
    text = json.dumps(_without(value), ensure_ascii=False, default=str).replace('"', "")
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without(its) for field, its in value.items() if field not in HIDDEN}
    return [_without(each) for each in value] if isinstance(value, list | tuple) else value
