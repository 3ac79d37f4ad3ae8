"""What a reader sees of explored processes on a bucket: objects, processes, requests, and what the laws say."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bench.pages.explorer import Card, Happening, Verdict
from runs.history import Op
from simulation.bucket import Request
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.events import Event
from simulation.exploration.requests import told_of
from simulation.exploration.search import Failing
from simulation.exploration.setting import Setting
from simulation.exploration.shown import is_fault, judged
from simulation.exploration.telling import said
from simulation.programs import LEADERLESS

PANES = ("Objects in the bucket", "Processes", "Requests on their way", "Time and faults")
SHOWN_LAST = 4  # requests of a process
LINES_MAX = 12  # of an object
ZEROS = re.compile(r"0{6,}(?=\d)")
END = "a new process reads the log to its end, and the checker judges the history"
LAWS = (
    "OffsetsDense",
    "HeadNeverReturns",
    "CommittedReadable",
    "SegmentsImmutable",
    "RefinesHeadLog",
)


class BucketLook(NamedTuple):
    """A state: the cards of its panes, and the requests that are held or on their way, by name."""

    panes: tuple[tuple[Card, ...], ...]
    requests: Mapping[str, str]


class BucketLooks:
    """Looks at states of a setting."""

    panes = PANES

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def __call__(self, system: Any) -> BucketLook:
        """Look at a state."""
        bucket: ExploredBucket = system
        requests, late = bucket.requests, bucket.late
        panes = (
            tuple(_object(key, value) for key, value in bucket.objects),
            tuple(self._process(bucket, client) for client in self._setting.acting),
            tuple(_request(name, asked, late) for name, asked in sorted(requests.items())),
            (_budget(bucket),),
        )
        return BucketLook(panes, requests)

    def _process(self, bucket: ExploredBucket, client: str) -> Card:
        facts = [("did", line) for line in _deeds(bucket.journal[bucket.begins_at :], client)]
        facts += [(op.f, _outcome(op)) for op in bucket.operations(client)]
        return Card(client, (*facts, ("now", "acts" if client in bucket.acting else "has ended")))

    def verdicts(self, failed: Failing | None, *, end: bool) -> tuple[Verdict, ...]:
        """See `ClusterLooks.verdicts`."""
        laws = LAWS if self._setting.strategy == LEADERLESS else ()
        return judged(laws, failed, END if end else "")

    def happening(self, event: Event, before: BucketLook) -> Happening:
        """An event in words."""
        asked = before.requests.get(event.what, "")
        client = event.what.partition(" ")[0]
        named = Event(event.kind, f"{client}: {_name(asked)}") if asked else event
        return Happening(said(named), "", is_fault(event))

    def signals(self, event: Event, before: BucketLook, after: BucketLook) -> Iterator[str]:
        """What an event did to requests; see `bench.pages.explorer.Edge`."""
        if event.kind in ("kill", "orphan"):
            yield f"!{event.what}>{event.what} killed"
        for name in (name for name in before.requests if name not in after.requests):
            client, asked = _wire(name, before.requests[name])
            lost = event.kind in ("lose", "kill", "orphan")
            yield f"{'x' if lost else '-'}{asked}"
            if event.kind in ("carry", "forget"):
                answer = f"bucket>{client} answer {name}"
                yield f"+{answer}"
                yield f"{'x' if event.kind == 'forget' else '-'}{answer}"
        for name in after.requests:
            if name not in before.requests:
                yield f"+{_wire(name, after.requests[name])[1]}"


def _wire(name: str, asked: str) -> tuple[str, str]:
    client = name.partition(" ")[0]
    return client, f"{client}>bucket {asked.partition(' ')[0]} {name}"


def _object(key: str, value: bytes) -> Card:
    lines = [*told_of(value)]
    cut = lines[:LINES_MAX] + ["…"] * (len(lines) > LINES_MAX)
    return Card(_name(key), tuple(("", line) for line in cut))


def _name(key: str) -> str:
    """An object's name without the zeros before a number."""
    return ZEROS.sub("…", key)


def _outcome(op: Op) -> str:
    """An operation as it began or ended: `begun: 7`, `ok: 7 at 2`."""
    parts = [_text(value) for value in _messages(op.value)]
    return f"{'begun' if op.type == 'invoke' else op.type}: {', '.join(parts) or 'nothing'}"


def _messages(value: Any) -> Iterator[Any]:
    """The messages of an operation, with their offsets once they have any."""
    for _f, *rest in value or ():
        match rest:
            case [_key, [offset, message]]:
                yield f"{message} at {offset}"
            case [_key, message]:
                yield message
            case [dict(msgs)]:
                for pairs in msgs.values():
                    yield from (f"{message} at {offset}" for offset, message in pairs)


def _deeds(journal: list[Request], client: str) -> Iterator[str]:
    its = [request for request in journal if request.client == client]
    for request in its[-SHOWN_LAST:]:
        yield f"{request.kind} {_name(request.key)}".strip() + f": {request.outcome}"


def _request(name: str, asked: str, late: frozenset[str]) -> Card:
    state = "timed out; nobody waits for it" if name in late else "its process waits for the answer"
    return Card(f"{name.partition(' ')[0]} → bucket: {_name(asked)}", (("", state),))


def _budget(bucket: ExploredBucket) -> Card:
    left = [(f"may still be {name}", f"{count} ×") for name, count in bucket.left.items() if count]
    return Card("time", (("passed", f"{bucket.seconds:.3f} s"), *left))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str).replace('"', "")
