"""A node's trace (NDJSON) as a TLA+ module, so that TLC can follow it through HeadLog.

The event names and fields are those of the table in `docs/refinement.md`. TLC 2.15 reads no
JSON, so the trace becomes a sequence of records; nodes and keys become strings.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Event: TypeAlias = Mapping[str, Any]

# The fields of every step beside "step" and "node".
FIELDS: dict[str, tuple[str, ...]] = {
    "Send": ("id", "epoch", "appends", "commits"),
    "Try": ("ids",),
    "Commit": ("base", "entries"),
    "Conflict": (),
    "Unknown": ("ids",),
    "Seal": ("base", "length"),
    "Refresh": ("length", "epoch"),
    "Poll": ("key", "from", "offsets"),
    "HandOver": ("id", "to"),
    "Answered": ("length", "epoch"),
    "Acked": ("id", "offsets"),
    "Reject": ("id",),
    "Abandon": ("id",),
    "Restart": ("incarnation",),
    "TrySwitch": ("epoch",),
    "Fence": ("epoch",),
    "Unfence": ("epoch",),
    "Claim": ("epoch", "base"),
    "CompactWrite": ("base",),
    "CompactDelete": ("base",),
    "CompactCursor": ("base",),
    "Release": (),
    "GiveUp": (),
}


class TraceError(ValueError):
    """A line is no event of the trace format; the message names the line and what is wrong."""


@dataclass(frozen=True)
class Trace:
    """A trace: how many segments become one run, and the events in order (step 1 first).

    `switches`: the epochs that a fence or unfence tried to begin without ever hearing that it did.
    """

    segments_per_run: int
    events: tuple[Event, ...]
    switches: tuple[int, ...] = ()


def _event(number: int, line: str) -> Event:
    try:
        event = json.loads(line)
    except ValueError as error:
        raise TraceError(f"line {number} is not JSON: {error}") from None
    fields = FIELDS.get(event.get("step", "")) if isinstance(event, dict) else None
    if fields is None:
        raise TraceError(f"line {number} is no step of HeadLog (one of {', '.join(FIELDS)})")
    missing = [name for name in ("node", *fields) if name not in event]
    if missing:
        raise TraceError(f"line {number}: {event['step']} lacks {', '.join(missing)}")
    return event  # type: ignore[no-any-return]  # json.loads says Any; the checks above say dict


def read(lines: Iterable[str]) -> Trace:
    """Read a trace: first `{"segments_per_run": K}`, then one event a line.

    Raises:
        TraceError: a line is no event.
    """
    texts = [line for line in lines if line.strip()]
    try:
        segments_per_run = int(json.loads(texts[0])["segments_per_run"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise TraceError('line 1 must be the header, like {"segments_per_run": 16}') from None
    return Trace(segments_per_run, tuple(_event(i, t) for i, t in enumerate(texts[1:], start=2)))


_SILENT = ""  # the incarnation of a life of which a trace says nothing


def _writer(writer: str) -> tuple[str, str]:
    life, _, lane = writer.partition("/")
    node, _, incarnation = life.rpartition(".")
    if not node or not incarnation:
        raise TraceError(f"writer {writer!r} is not of the form node.incarnation")
    if lane not in ("", "0"):
        raise TraceError(f"writer {writer!r} is a second lane: trace a node with one lane")
    return node, incarnation


def _sequence(items: Iterable[str]) -> str:
    return f"<<{', '.join(items)}>>"


class _Translator:
    """Writes the events of one trace as TLA+; knows its nodes, keys and incarnations."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        asked = {e["to"] for e in trace.events if "to" in e}
        self.nodes = sorted({e["node"] for e in trace.events} | asked)
        self.keys = sorted(set(self._keys()))
        self._ranks = self._incarnation_ranks()
        claims = {e["epoch"] for e in trace.events if e["step"] == "Claim"}
        self._claims = {epoch: rank for rank, epoch in enumerate(sorted(claims), start=1)}

    def _keys(self) -> Iterable[str]:
        for event in self.trace.events:
            yield from event.get("appends", {})
            yield from event.get("commits", {})
            yield from event.get("offsets", {}) if event["step"] == "Acked" else ()
            if event["step"] == "Poll":
                yield event["key"]
            for entry in event.get("entries", ()):
                yield from entry["appends"]
                yield from entry.get("commits", {})

    def _incarnation_ranks(self) -> dict[str, dict[str, int]]:
        """Incarnations may be any names: a node's lives are numbered as they appear."""
        found: dict[str, dict[str, int]] = {node: {} for node in self.nodes}
        for event in self.trace.events:
            if event["step"] == "Restart":
                ranks = found[event["node"]]
                if not ranks:
                    ranks[_SILENT] = 0  # it restarted before it ever sent
                ranks.setdefault(str(event["incarnation"]), len(ranks))
            elif event["step"] == "Send":
                node, incarnation = _writer(event["id"][0])
                ranks = found.setdefault(node, {})
                ranks.setdefault(incarnation, len(ranks))
        return found

    @property
    def last_incarnation(self) -> int:
        """More than the number of any life that was traced."""
        return max((len(ranks) for ranks in self._ranks.values()), default=1)

    def _rank(self, node: str, incarnation: str) -> int:
        return self._ranks.get(node, {}).get(incarnation, self.last_incarnation)

    def id(self, id_: Sequence[Any]) -> str:
        node, incarnation = _writer(id_[0])
        rank = self._rank(node, incarnation)
        return f'[node |-> "{node}", incarnation |-> {rank}, seq |-> {int(id_[1])}]'

    def by_key(self, values: Mapping[str, int], default: int = 0) -> str:
        if not self.keys:
            return "<<>>"
        pairs = (f'"{key}" :> {int(values.get(key, default))}' for key in self.keys)
        return f"({' @@ '.join(pairs)})"

    def entry(self, entry: Mapping[str, Any]) -> str:
        appends = entry["appends"]
        first = self.by_key({key: block[0] for key, block in appends.items()})
        count = self.by_key({key: block[1] for key, block in appends.items()})
        commits = self.by_key(entry.get("commits", {}))
        return (
            f"[slot |-> {int(entry['slot'])}, id |-> {self.id(entry['id'])}, "
            f"first |-> {first}, count |-> {count}, commits |-> {commits}]"
        )

    def field(self, event: Event, name: str) -> str:
        value = event[name]
        if name == "offsets" and event["step"] == "Acked":
            return f"first |-> {self.by_key(value, -1)}"  # -1: nothing written to that key
        if name == "incarnation":
            return f"incarnation |-> {self._rank(event['node'], str(value))}"
        if name == "epoch" and event["step"] == "Claim":
            return f"epoch |-> {self._claims[value]}"  # a claim that never took effect leaves a gap
        written: dict[str, tuple[str, Callable[[Any], str]]] = {
            "id": ("id", self.id),
            "ids": ("ids", lambda ids: _sequence(map(self.id, ids))),
            "entries": ("entries", lambda entries: _sequence(map(self.entry, entries))),
            "appends": ("count", self.by_key),
            "commits": ("commits", self.by_key),
            "offsets": ("offsets", lambda offsets: _sequence(str(int(o)) for o in offsets)),
        }
        new_name, write = written.get(name, (name, json.dumps))
        return f"{new_name} |-> {write(value)}"

    def event(self, event: Event) -> str:
        fields = [f'step |-> "{event["step"]}"', f"node |-> {json.dumps(event['node'])}"]
        fields += [self.field(event, name) for name in FIELDS[event["step"]]]
        return f"[{', '.join(fields)}]"

    def full_tails(self) -> str:
        seals = {e["base"]: e["length"] for e in self.trace.events if e["step"] == "Seal"}
        return " @@ ".join(f"{int(b)} :> {int(n)}" for b, n in seals.items()) or "<<>>"

    def module(self) -> str:
        events = ",\n    ".join(self.event(event) for event in self.trace.events)
        quoted = ["{" + ", ".join(json.dumps(v) for v in s) + "}" for s in (self.nodes, self.keys)]
        return (
            "---- MODULE TraceData ----\nEXTENDS Integers, Sequences, TLC\n"
            f"TraceNodes == {quoted[0]}\nTraceKeys == {quoted[1]}\n"
            f"LostSwitches == {{{', '.join(map(str, self.trace.switches))}}}\n"
            f"FullTails == {self.full_tails()}\nTrace == <<\n    {events}\n>>\n====\n"
        )


def module_text(trace: Trace) -> str:
    """The module TraceData for this trace."""
    return _Translator(trace).module()


def config_text(trace: Trace) -> str:
    """The configuration that follows this trace; every budget is large enough for it."""
    count = len(trace.events)
    constants = {
        "Nodes": "<- TraceNodes",
        "Keys": "<- TraceKeys",
        "None": "= None",
        "Tombstone": "= Tombstone",
        "Contents": "= {}",
        "IsFull": "<- FullInTrace",
        "TailLimit": "= 1",  # not looked at: IsFull is replaced
        "RunSegments": f"= {trace.segments_per_run}",
        "MayAbandon": "= TRUE",
        "MayGiveUp": "= TRUE",
        "MaxIncarnation": f"= {_Translator(trace).last_incarnation + 1}",
    } | dict.fromkeys(
        ("MaxSlots", "MaxSeq", "MaxEpoch", "MaxInFlight", "MaxHandOvers", "MaxClaims"),
        f"= {2 * count + 1}",
    )
    lines = [f"  {name} {value}" for name, value in constants.items()]
    return "\n".join(["SPECIFICATION TraceSpec", "INVARIANT NotAccepted", "CONSTANTS", *lines, ""])
