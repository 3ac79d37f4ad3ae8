"""What a reader sees of an explored system: store, processes, clients, messages, and what the laws say."""

import json
import re
from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from bench.nemesis.requests import STORE
from bench.pages.explorer import Card, Happening, Verdict
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategies.serving import Copy
from leaderless.wire.bodies import ErrorCode
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.clients import KEY, LOST, Client
from simulation.exploration.explored import Explored
from simulation.exploration.processes import Memory
from simulation.exploration.search import Event, Failing
from simulation.exploration.setting import Setting
from simulation.exploration.telling import is_fault, said
from simulation.hosts import NodeSession
from simulation.life import BUCKET
from simulation.logs import LEADERLESS
from simulation.oracle import Body

NODES, PROGRAMS = ("Store", "Nodes"), ("Objects in the bucket", "Programs")
PANES = ("Clients", "Messages on their way", "Time and faults")
TEXT_MAX = 400
NEVER_CHANGE = frozenset(
    ("_others", "_block", "_size", "_followers", "_leader", "_leads", "_writer")
)
HIDDEN = frozenset(  # of bodies and values
    ("type", "msg_id", "in_reply_to", "shape", "size", "etag", "unless", "after", "limit")
)
SHOWN_LAST = 4  # requests of a program
LINES_MAX = 12  # of an object
ZEROS = re.compile(r"0{6,}(?=\d)")
ENDS = {
    "nodes": "every node serves once more and is polled from the beginning; the checker judges the history",
    "programs": "a new process reads the log to its end, and the checker judges the history",
}
GONE = "nothing: its process was killed, or stood still"
ERRORS = {  # what the store says, in few words
    ErrorCode.KEY_DOES_NOT_EXIST: "there is no such key",
    ErrorCode.PRECONDITION_FAILED: "it holds something else",
}
FAULTS_LEFT = {
    "lose": "messages may be lost",
    "double": "messages may double",
    "delay": "requests may be carried out late",
    "kill": "processes may die",
    "late": "time may pass early",
    "cut": "nodes may be cut off",
}
# By the strategy, the processes or the option that have them.
LAWS: Mapping[str, Mapping[str, str]] = {
    "nodes": {
        "AckedExactlyOnce": "an acknowledged message is in the log, once, at its offset",
        "ViewIsPrefix": "what a node shows is the beginning of the log",
        "PollContiguous": "a poll leaves no offset out, and none comes behind it",
        "PollFresh": "a poll shows what was acknowledged before it was asked",
        "RejectedNeverAppended": "what was refused for good never gets into the log",
        "AnsweredOnce": "a request gets one answer at most",
    },
    "programs": {"AnsweredOnce": "a request gets one answer at most"},
    LEADERLESS: {
        "OffsetsDense": "a batch begins at the offset where its key ended",
        "HeadNeverReturns": "the head never has a value that it had before",
        "CommittedReadable": "what was committed can be read",
        "RefinesHeadLog": "each step is one that the model may take",
    },
    "fence": {"NoAppendWhileFenced": "nothing is appended while the log is fenced"},
    "compactions": {"SegmentsImmutable": "a sealed segment never changes"},
    "compaction": {
        "SegmentsImmutable": "a sealed segment never changes",
        "OneLiveClaim": "a claim is not taken from a worker that lives",
        "CursorNeverPassesCompacted": "what the cursor has passed stands in runs",
    },
    "commits": {"CommitsKept": "a committed offset never goes back"},
}


class Look(NamedTuple):
    """A state: the cards of its panes, and what tells what an event did to messages.

    `bodies`: of the messages on their way, by name; `clients`: as they were then; `cut_off`: the node that is.
    """

    panes: tuple[tuple[Card, ...], ...]
    bodies: Mapping[str, Body]
    clients: Mapping[str, Client]
    cut_off: str


class Looks:
    """Looks at states of a setting. A node's card follows from its memory, and is made once."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._cards: dict[tuple[str, bytes], Card] = {}
        self.panes = (*(PROGRAMS if setting.programs else NODES), *PANES)

    def __call__(self, system: Any) -> Look:
        """Look at a state."""
        its: Explored = system
        clients = {c.name: replace(c, seen=[*c.seen]) for c in its.history.clients.values()}
        bodies = its.messages()
        panes = (
            tuple(_stored(name, value) for name, value in its.stored()),
            tuple(self._process(its, name) for name in self._setting.names),
            tuple(map(_client, clients.values())),
            tuple(_message(name, body, its.late) for name, body in sorted(bodies.items())),
            (_budget(its),),
        )
        return Look(panes, bodies, clients, its.cut_off)

    def _process(self, system: Explored, name: str) -> Card:
        if isinstance(system, ExploredBucket):
            return _program(system, name)
        memory = system.memory(name)
        key, start = (name, memory.digest), memory.life.start
        if key not in self._cards:
            life = [("life", str(start))] if start > 1 else []
            self._cards[key] = Card(name, (*life, *system.look(name, _facts), *_timer(memory)))
        return self._cards[key]

    def verdicts(self, failed: Failing | None, *, end: bool) -> tuple[Verdict, ...]:
        """The laws that are judged in each step; `failed` breaks one of them."""
        setting = self._setting
        given = {setting.of, setting.strategy, *setting.as_object()}
        laws = {law: text for of in LAWS if of in given for law, text in LAWS[of].items()}
        return judged(laws, failed, ENDS[setting.of] if end else "")

    def happening(self, event: Event, before: Look) -> Happening:
        """An event in words."""
        if event.kind == "ask":
            return Happening(f"{said(event)}: {_asked(before.clients[event.what])}")
        body, detail = before.bodies.get(event.what), ""
        if body is not None:
            event, detail = Event(event.kind, _readable(event.what, body)), _brief(body)
        return Happening(said(event), detail, is_fault(event))

    def signals(self, event: Event, before: Look, after: Look) -> Iterator[str]:
        """What an event did to messages; see `bench.pages.explorer.Edge`."""
        if event.kind in ("kill", "orphan"):
            yield f"!{event.what}>{event.what} killed"
        for name in (name for name in before.bodies if name not in after.bodies):
            src, dest = ends = _ends(name)
            is_cut = before.cut_off in ends and STORE not in ends
            lost = name != event.what or event.kind == "lose" or is_cut
            yield f"{'x' if lost else '-'}{name}"
            if event.kind in ("carry", "forget") and not lost:
                reply = f"{dest}>{src} answer {name.rpartition(' ')[2]}"
                yield from (f"+{reply}", f"{'x' if event.kind == 'forget' else '-'}{reply}")
        for name, client in after.clients.items():
            known = before.clients[name]
            if client.asked > known.asked:
                kind, _ = client.requests[client.asked - 1]
                yield from _at_once(f"{name}>{client.node} {kind} {client.asked}")
            for number, answer in enumerate(client.answers):
                if number >= len(known.answers):
                    yield from _at_once(f"{client.node}>{name} {answer['type']} {number}")
        yield from (f"+{name}" for name in after.bodies if name not in before.bodies)


def judged(texts: Mapping[str, str], failed: Failing | None, end: str) -> tuple[Verdict, ...]:
    """The laws of a state, the broken one first; `end`: how it was judged as an end, if it is one."""
    laws = [Verdict(law, True, text) for law, text in texts.items()]
    at_end = [Verdict("The end was judged", True, end)] if end else []
    if failed:
        text = failed.text.partition("\n")[0]  # a traceback follows, with paths of this machine
        broken = Verdict(failed.name, False, text)
        return broken, *at_end, *(each for each in laws if each.law != failed.name)
    return *at_end, *laws


def _at_once(name: str) -> tuple[str, str]:
    return f"+{name}", f"-{name}"


def _ends(name: str) -> tuple[str, str]:
    src, _, dest = name.partition(" ")[0].partition(">")
    return src, dest


# ---------------------------------------------------------------- cards


def _stored(name: str, value: Any) -> Card:
    """A register, or an object line by line."""
    if isinstance(value, bytes):
        lines = [*map(_line, value.splitlines())]
        cut = lines[:LINES_MAX] + ["…"] * (len(lines) > LINES_MAX)
        return Card(_short(name), tuple(("", line) for line in cut))
    if not isinstance(value, dict):
        return Card(name, (("value", _text(value)),))
    shown = {field: its for field, its in value.items() if field not in HIDDEN}
    entries = shown.pop("entries", None)
    facts = [(field, _text(its)) for field, its in shown.items()]
    if isinstance(entries, list):
        base = value.get("base", 0)
        facts += [(f"slot {slot}", _entry(entry)) for slot, entry in enumerate(entries, base)]
    return Card(name, tuple(facts))


def _line(line: bytes) -> str:
    """A line of an object; of S3-Queue's entries and counters in few words."""
    try:
        found: Any = json.loads(line)
    except ValueError:
        return repr(line)
    match found:
        case {"type": kind, "msgCount": count, "offset": offset}:
            return f"{kind}, {count} up to {offset}"
        case {"value": value, "pending": {"offset": offset}}:
            return f"next {value}, pending {offset}"
    return line.decode()


def _program(bucket: ExploredBucket, name: str) -> Card:
    """The newest requests of a program, and what came of them."""
    its = [each for each in bucket.store.journal[bucket.begins_at :] if each.client == name]
    facts = [
        ("did", f"{each.kind} {_short(each.key)}".strip() + f": {each.outcome}")
        for each in its[-SHOWN_LAST:]
    ]
    lives = bucket.is_alive(name)
    timer = _timer(bucket.memory(name)) if lives else []
    return Card(name, (*facts, *timer, ("now", "acts" if lives else "has ended")))


def _entry(entry: list[Any]) -> str:
    """What a batch put into the log, and its name."""
    writer, seq, appends, commits, *_ = entry
    said_ = [f"{key}: {_text(msgs)} from offset {first}" for key, (first, msgs) in appends.items()]
    said_ += [f"{key} committed at {offset}" for key, offset in commits.items()]
    return f"{', '.join(said_) or 'nothing'} (batch {seq} of {writer})"


def _client(client: Client) -> Card:
    requests = ", then ".join(
        dict.fromkeys(
            f"{kind.replace('_', ' ')} {_number(kind, n)}".strip() for kind, n in client.requests
        )
    )
    told = [
        ("was told", GONE if each == LOST else _brief(each, with_type=True))
        for each in client.seen
        if isinstance(each, dict) or each == LOST
    ]
    state = "waits" if client.waiting else "is done" if client.done else "may ask"
    asks = ("asks", f"{requests} (through {client.node})")
    return Card(client.name, (asks, *told, ("now", state)))


def _number(kind: str, number: int) -> str:
    return str(number) if kind in ("send", "commit_offsets") else ""


def _asked(client: Client) -> str:
    kind, number = client.requests[client.asked]
    return f"{kind} {_number(kind, number)}".strip() + f", through {client.node}"


def _message(name: str, body: Body, late: Container[str]) -> Card:
    timed_out = [("", "timed out; nobody waits for it")] if name in late else []
    return Card(_readable(name, body), (*_fields(body), *timed_out))


def _readable(name: str, body: Body) -> str:
    """A message in words: from, to, what."""
    src, dest = _ends(name)
    copy = " (again)" * (name.count("+") > 0)
    key = _short(body["key"]) if dest in (STORE, BUCKET) else ""
    what = f"{body['type'].replace('_', ' ')} {key}"
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


def _short(key: str) -> str:
    """A name without the zeros before a number."""
    return ZEROS.sub("…", key)


def _budget(system: Explored) -> Card:
    left = [(FAULTS_LEFT[kind], f"{count} ×") for kind, count in system.left.items() if count]
    cut = [("cut off", system.cut_off)] if system.cut_off else []
    return Card("time", (("passed", f"{system.seconds:g} s"), *cut, *left))


def _timer(memory: Memory) -> list[tuple[str, str]]:
    return [("next timer", f"at {memory.deadline:g} s")] if memory.deadline < inf else []


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
    match value:
        case str() | int() | float():
            return value
        case Mapping():
            shown = {str(key): _plain(its) for key, its in value.items()}
            return {key: its for key, its in shown.items() if its is not None}
        case tuple() if hasattr(value, "_asdict"):
            return _plain(value._asdict())
        case [int(first), _, _, *_] if [*value] == [*range(first, first + len(value))]:
            return f"{first} to {value[-1]}"
        case list() | tuple() | deque():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return _plain([*value])
        case Copy() if messages := value.since({KEY: 0}):
            return _messages(messages)
    return None


def _text(value: Any) -> str:
    """A value on one line, without what says nothing here."""
    text = json.dumps(_without(value), ensure_ascii=False, default=str).replace('"', "")
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _without(its) for field, its in value.items() if field not in HIDDEN}
    return [_without(each) for each in value] if isinstance(value, list | tuple) else value
