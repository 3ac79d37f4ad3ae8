"""The figures of a run of ordinary size, in plain Python: a page should not wait for Spark.

Each function is the twin of a metric in `analysis.metrics` (or of a table in `analysis.ingest`), which
has its definition.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pages import reading
from pages.figures import Figures, Row, window_width
from pages.folders import Folder
from runs.faults.names import DEEDS

NEMESIS = "nemesis"
SERVICES = ("lin-kv", "seq-kv", "lww-kv", "lin-tso")
SHARES = {"latency_ns_p50": 0.5, "latency_ns_p90": 0.9, "latency_ns_p99": 0.99}


@dataclass(slots=True)
class Operation:
    """An invocation with its completion; `open` while it has none."""

    f: str
    invoked_ns: int
    outcome: str = "open"
    completed_ns: int | None = None

    @property
    def latency_ns(self) -> int:
        assert self.completed_ns is not None, "asked of completed operations only"
        return self.completed_ns - self.invoked_ns


def measure(run: Folder) -> Figures:
    """Read the run's history and journal, within the limits of `reading`."""
    bad, notes = reading.Bad(), []
    operations: list[Operation] = []
    nemesis: list[reading.Record] = []
    try:
        if run.history:
            operations, nemesis = _paired(reading.history(run.history, bad))
        else:
            notes.append(
                "There is no history: the run ended, or was copied, before one was written."
            )
    except reading.TooLarge as error:
        notes.append(str(error))
    network: list[Row] = []
    by_type: list[Row] = []
    try:
        messages = _messages(reading.journal(run.journal, bad))
        network = network_statistics(messages, len(operations)) if messages else []
        by_type = messages_by_type(messages, len(operations))
    except reading.TooLarge as error:
        notes.append(str(error))
    ends = [max(each.invoked_ns, each.completed_ns or 0) for each in operations]
    duration_ns = max(ends, default=0)
    window_ns = window_width(duration_ns)
    return Figures(
        operation_count=len(operations),
        duration_ns=duration_ns,
        window_ns=window_ns,
        latency=latency_quantiles(operations),
        latency_over_time=latency_over_time(operations, window_ns),
        throughput=throughput(operations, window_ns),
        network=network,
        by_type=by_type,
        faults=faults(nemesis),
        quarantine=bad.rows(),
        notes=notes,
    )


def _paired(
    history: Iterable[reading.Record],
) -> tuple[list[Operation], list[reading.Record]]:
    """Operations of clients in order of invocation, and the lines of the nemesis."""
    operations: list[Operation] = []
    nemesis: list[reading.Record] = []
    open_of: dict[Any, Operation] = {}
    for line in history:
        process = line["process"]
        if process == NEMESIS:
            nemesis.append(line)
        elif line["type"] == "invoke":
            open_of[process] = operation = Operation(line["f"], line["time"])
            operations.append(operation)
        elif ended := open_of.pop(process, None):
            ended.outcome, ended.completed_ns = line["type"], line["time"]
    return operations, nemesis


def latency_quantiles(operations: Sequence[Operation]) -> list[Row]:
    """By kind of operation and outcome."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in operations:
        if each.completed_ns is not None:
            groups[each.f, each.outcome].append(each.latency_ns)
    return [{"f": f, "outcome": how, **_quantiles(groups[f, how])} for f, how in sorted(groups)]


def latency_over_time(operations: Sequence[Operation], window_ns: int) -> list[Row]:
    """By kind of operation, in windows of the time of invocation."""
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for each in operations:
        if each.completed_ns is not None:
            start_ns = each.invoked_ns - each.invoked_ns % window_ns
            groups[each.f, start_ns].append(each.latency_ns)
    return [
        {"f": f, "window_start_ns": start_ns, **_quantiles(groups[f, start_ns])}
        for f, start_ns in sorted(groups)
    ]


def throughput(operations: Sequence[Operation], window_ns: int) -> list[Row]:
    """Completed operations per second by outcome, in windows of the time of completion."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for each in operations:
        if each.completed_ns is not None:
            counts[each.outcome, each.completed_ns - each.completed_ns % window_ns] += 1
    return [
        {
            "outcome": outcome,
            "window_start_ns": start_ns,
            "operation_count": counts[outcome, start_ns],
            "rate_hz": counts[outcome, start_ns] / (window_ns / 1e9),
        }
        for outcome, start_ns in sorted(counts)
    ]


def _quantiles(latencies_ns: list[int]) -> Row:
    """A quantile is the smallest latency that a share of them do not exceed."""
    ranked = sorted(latencies_ns)
    at = {name: ranked[math.ceil(q * len(ranked)) - 1] for name, q in SHARES.items()}
    return {"operation_count": len(ranked), **at, "latency_ns_max": ranked[-1]}


@dataclass(slots=True)
class _Message:
    link: str
    type: str | None
    send_count: int = 0
    recv_count: int = 0


def _messages(events: Iterable[reading.Record]) -> list[_Message]:
    by_id: dict[Any, _Message] = {}
    for event in events:
        message = event["message"]
        known = by_id.get(message["id"])
        if known is None:
            link = link_of(message["src"], message["dest"])
            known = by_id[message["id"]] = _Message(link, message["body"].get("type"))
        if event["type"] == "send":
            known.send_count += 1
        else:
            known.recv_count += 1
    return list(by_id.values())


def link_of(src: str, dest: str) -> str:
    """The class of the link between two parties: client, node-store or node-node."""
    if src.startswith("c") or dest.startswith("c"):
        return "client"
    return "node-store" if src in SERVICES or dest in SERVICES else "node-node"


def network_statistics(messages: Sequence[_Message], operation_count: int) -> list[Row]:
    """The real tool's `:net` map as rows: all, clients, servers."""
    scopes = {
        "all": messages,
        "clients": [each for each in messages if each.link == "client"],
        "servers": [each for each in messages if each.link != "client"],
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
    ]


def messages_by_type(messages: Sequence[_Message], operation_count: int) -> list[Row]:
    """Messages of each type on each class of link."""
    groups: dict[tuple[str, str | None], list[_Message]] = defaultdict(list)
    for each in messages:
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
    return sorted(rows, key=lambda r: (r["link"], -r["message_count"], str(r["type"])))


def _share(count: int, operation_count: int) -> float | None:
    return count / operation_count if operation_count else None


def faults(nemesis: Sequence[reading.Record]) -> list[Row]:
    """The widest time in which each fault can have been in force, as the table `faults` has it.

    The nemesis writes two lines for each thing it does, before and after.
    """
    found: list[Row] = []
    seen: dict[str, int] = defaultdict(int)
    active: dict[str, Row] = {}
    for line in nemesis:
        if line["f"] not in DEEDS:
            continue
        kind, begins = DEEDS[line["f"]]
        after = seen[line["f"]] % 2 == 1
        seen[line["f"]] += 1
        value = (
            None if line.get("value") is None else json.dumps(line["value"], separators=(",", ":"))
        )
        current = active.get(kind)
        if begins and not after:
            if current and current["ended_ns"] is None:
                current["ended_ns"] = line["time"]
            active[kind] = {
                "kind": kind,
                "started_ns": line["time"],
                "ended_ns": None,
                "target_json": value,
                "effect_json": value,
            }
            found.append(active[kind])
        elif begins and current:
            current["effect_json"] = value
        elif current:
            current["ended_ns"] = line["time"]
            if after:
                del active[kind]
    return sorted(found, key=lambda row: row["started_ns"])
