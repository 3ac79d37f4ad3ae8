"""A run as rows of the lake's tables, in plain Python and little memory.

Its files are read twice. `runs.figures.measure` goes first; on its way it is noted when each message arrived.
Then the rows are made one after the other, with what the first pass knows. A message takes some ten bytes.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import orjson

from analysis.finding import FoundRun
from runs import edn, reading
from runs.facts import CRASHED, EMBEDDED, Results, Settings, Told, read_options
from runs.figures import Figures, measure
from runs.files import RESULTS_JSON, STRIPE_ENDING
from runs.history import NEMESIS, Keyword, Op, Process, json_text, with_keywords
from runs.operations import OPEN, Row
from runs.traffic import Event, link_of, sender

BY_CAUSE, BY_TYPE = "messages_per_op_by_cause", "messages_per_op_by_type"
TABLES_VERSION = 5  # part of a version: raise it when the same files would now give other tables
TEXT_KEPT = 200  # bytes of a bad line that the quarantine keeps: enough to recognise it
CALM, SEVERAL = "calm", "several"
MAIN, RECOVERY, FINAL = "main", "recovery", "final"
_MANY_DIGITS = re.compile(rb"\d{19}")  # orjson reads integers of more than 64 bits as floats
_MOST = (1 << 16) - 1  # of a count
Rows = Iterator[tuple[str, Row]]


def version_of(run: FoundRun) -> str:
    """The state of a run's files, and of the tables; another one means that the lake must read it again."""
    return f"{TABLES_VERSION}-{run.fingerprint()}"


def read(run: FoundRun, folder: Path) -> tuple[Row, Rows]:
    """Read the run whose files are in `folder`: what every row of it begins with, and rows by their table.

    Nothing is left out in silence: a line or a file that cannot be used is a row of the quarantine.
    """
    bad, unnoted, whole = _Bad(), reading.Bad(), reading.Budget()
    told, arrivals = _told(run, folder, bad), _Arrivals()
    history, journal = folder / run.history.name, [folder / each.name for each in run.files.journal]
    events = arrivals.noted(reading.journal(journal, unnoted, whole))
    results = run.files.results
    write = json.dumps if results and results.name == RESULTS_JSON else edn.dumps
    figures = measure(reading.history(history, unnoted, whole), events, told)
    return {"run_id": run.run_id, "version": version_of(run), **figures.who}, bad.between(
        chain(
            _of("operations", _operations(history, _Placing(told.settings, figures), bad)),
            _of("messages", _messages(journal, arrivals, bad)),
            _of("faults", figures.table("faults")),
            _of("anomalies", anomalies(told.results, write)),
            _of("figures", _figures(figures)),
            _of("runs", [_run(run, told)]),
        )
    )


def _told(run: FoundRun, folder: Path, bad: "_Bad") -> Told:
    """What the small files say, however large they are."""
    told = Told.of(folder, run.cell)
    for file in run.files:
        if not file.size_bytes:
            bad.note(folder / file.name, "the file is empty")
    options, results = run.files.options, run.files.results
    if options and options.size_bytes and not told.options:
        with bad.noting(folder / options.name):
            read_options((folder / options.name).read_bytes())
    if results and results.size_bytes and told.problem:
        with bad.noting(folder / results.name):
            return replace(told, results=Results.of_run(folder))
    return told


def _of(table: str, rows: Iterable[Row]) -> Rows:
    return ((table, row) for row in rows)


class _Bad(reading.Bad):
    """Lines and files that cannot be used, as rows of the quarantine."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []

    def note(self, file: Path, reason: str, line: int | None = None, text: bytes = b"") -> None:
        """Quarantine a line, or a file as a whole."""
        name = f"{file.parent.name}/{file.name}" if file.suffix == STRIPE_ENDING else file.name
        kept = text[:TEXT_KEPT].decode(errors="replace").rstrip("\n") or None
        self._rows.append({"file": name, "reason": reason, "line": line, "text": kept})

    @contextmanager
    def noting(self, file: Path) -> Iterator[None]:
        """Note a small file whose reading fails."""
        try:
            yield
        except (OSError, ValueError) as error:
            self.note(file, f"cannot be read: {error}")

    def torn(self, file: Path, line: int, text: bytes) -> None:
        """Note it, whether or not it is still being written: the next ingest reads the file again."""
        self.note(file, "the last line has no end", line, text)

    def between(self, rows: Rows) -> Rows:
        """These rows, and those of the quarantine as they come."""
        for each in chain(rows, [None]):
            if each:
                yield each
            if self._rows:
                taken, self._rows = self._rows, []
                yield from _of("quarantine", taken)


# ---------------------------------------------------------------- operations


class _Placing:
    """Says of an operation in which phase it began, which faults it met, and to which node its client spoke."""

    def __init__(self, asked: Settings, figures: Figures) -> None:
        self._nodes, self._workers = asked.nodes or (), asked.concurrency
        self._main_ns = round((figures.numbers["main_s"] or 0) * 1e9)
        self._final_ns = self._main_ns + round((asked.recovery_time_s or 0) * 1e9)
        faults = [(f["kind"], f["started_ns"], f["ended_ns"]) for f in figures.table("faults")]
        # Kinds in force change at these times, to those at the same place.
        self._changes_ns = sorted(
            {start for _, start, _ in faults} | {end + 1 for *_, end in faults if end is not None}
        )
        self._kinds = [
            {
                kind
                for kind, start, end in faults
                if start <= at_ns and (end is None or end >= at_ns)
            }
            for at_ns in self._changes_ns
        ]

    def phase(self, invoked_ns: int) -> str:
        if invoked_ns <= self._main_ns:
            return MAIN
        return RECOVERY if invoked_ns < self._final_ns else FINAL

    def fault(self, invoked_ns: int, completed_ns: int | None) -> str:
        """A fault without end is in force to the end of the run, an open operation is under way to it."""
        first = max(bisect_right(self._changes_ns, invoked_ns) - 1, 0)
        until_ns = inf if completed_ns is None else completed_ns
        met = set().union(*self._kinds[first : bisect_right(self._changes_ns, until_ns)])
        return SEVERAL if len(met) > 1 else met.pop() if met else CALM

    def node(self, op: Op) -> str | None:
        """That of its worker: worker i has node i mod n, and a process stays the same modulo the workers.

        An operation names its node itself when that one has left.
        """
        if (named := op.extra.get("node")) is not None:
            return str(named)
        if not (self._nodes and self._workers):
            return None
        return self._nodes[int(op.process) % self._workers % len(self._nodes)]


def _operations(file: Path, placing: _Placing, bad: _Bad) -> Iterator[Row]:
    """Each invocation with what follows it in the order of its process: its completion, if it is one."""
    under_way: dict[Process, Row] = {}
    for number, line, op in reading.placed(file, bad, reading.Budget()):
        if op.process == NEMESIS:
            continue
        if not isinstance(op.process, int):
            bad.note(file, "process is neither a number nor nemesis", number, line)
        elif op.type == "invoke":
            if op.process in under_way:
                yield _with_fault(under_way[op.process], placing)
            under_way[op.process] = {
                "process": op.process,
                "f": str(op.f),
                "outcome": OPEN,
                "invoked_index": op.index,
                "invoked_ns": op.time,
                "phase": placing.phase(op.time),
                "node": placing.node(op),
                "invoked_value_json": _json(op.value, line),
            }
        elif row := under_way.pop(op.process, None):
            row |= {
                "outcome": str(op.type),
                "completed_index": op.index,
                "completed_ns": op.time,
                "latency_ns": op.time - row["invoked_ns"],
                "completed_value_json": _json(op.value, line),
                "error_json": json_text(op.extra["error"]) if "error" in op.extra else None,
            }
            yield _with_fault(row, placing)
        else:
            bad.note(file, "a completion without an invocation", number, line)
    yield from (_with_fault(row, placing) for row in under_way.values())


def halves(row: Any) -> Iterator[Op]:
    """The invocation and the completion that a row of the table is made of, as lines of a history."""
    ends: tuple[tuple[str, Any], ...] = (("invoked", "invoke"), ("completed", row.outcome))
    for end, kind in ends:
        at, at_ns, text = (row[f"{end}_{name}"] for name in ("index", "ns", "value_json"))
        if at is not None:
            is_told = row.error_json and end == "completed"
            extra: dict[str, Any] = (
                {Keyword("error"): json.loads(row.error_json)} if is_told else {}
            )
            value = with_keywords(json.loads(text)) if text else None
            yield Op(at, at_ns, kind, row.process, Keyword(row.f), value, extra)


def _with_fault(row: Row, placing: _Placing) -> Row:
    return row | {"fault": placing.fault(row["invoked_ns"], row.get("completed_ns"))}


def _json(value: Any, line: bytes) -> str:
    """A value of a history as JSON; `line` is where it is from."""
    if _MANY_DIGITS.search(line) and line.lstrip().startswith(b'{"'):
        return json.dumps(json.loads(line)["value"], sort_keys=True, separators=(",", ":"))
    return json_text(value)


# ---------------------------------------------------------------- messages


class _ById:
    """Numbers for each id: arrays from 0 on, and dictionaries for ids far beyond how many there are."""

    def __init__(self, *typecodes: str) -> None:
        """A column for each of these types of `array`; what was not set is 0."""
        self._near = [array(each) for each in typecodes]
        self._far: list[dict[int, int]] = [defaultdict(int) for _ in typecodes]

    def columns(self, number: int) -> Any:
        """The arrays or the dictionaries: whichever have this id."""
        size = len(self._near[0])
        if size <= number < 2 * size + 4096 and number not in self._far[0]:
            for column in self._near:
                column.frombytes(bytes(column.itemsize * (number + 1 - size + size // 8 + 1024)))
            size = len(self._near[0])
        return self._near if 0 <= number < size and number not in self._far[0] else self._far


class _Arrivals:
    """When each message arrived first, and how often it was sent and received: twelve bytes a message.

    Ids far beyond the number of messages have a dictionary. Counts end at 65 535.
    """

    def __init__(self) -> None:
        self._of = _ById("q", "H", "H")

    def noted(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on, and note each."""
        for event in events:
            at = event["message"]["id"]
            times_ns, sends, receipts = self._of.columns(at)
            if event["type"] != "send":
                times_ns[at] = min(times_ns[at], event["time"]) if receipts[at] else event["time"]
            counts = sends if event["type"] == "send" else receipts
            counts[at] = min(counts[at] + 1, _MOST)
            yield event

    def take(self, at: int, *, is_send: bool) -> tuple[int, int, int | None] | None:
        """Sends, receipts and the first arrival of a message, once: at its first sending, if it has one."""
        times_ns, sends, receipts = self._of.columns(at)
        found = sends[at], receipts[at], times_ns[at] if receipts[at] else None
        if found[:2] == (0, 0) or (sends[at] and not is_send):
            return None
        sends[at] = receipts[at] = 0
        return found


def _messages(files: Sequence[Path], arrivals: _Arrivals, bad: _Bad) -> Iterator[Row]:
    """The sending of each message with its receipt. `sent_ns` is that of the first sending in the journal."""
    for event in reading.journal(files, bad, reading.Budget()):
        message, is_send = event["message"], event["type"] == "send"
        found = arrivals.take(message["id"], is_send=is_send)
        if not found:
            continue
        sends, receipts, received_ns = found
        body, at_ns = message["body"], event["time"]
        took_ns = received_ns - at_ns if received_ns is not None and is_send else None
        type_ = body.get("type")
        yield {
            "message_id": message["id"],
            "src": message["src"],
            "dest": message["dest"],
            "link": link_of(sender(event), message["dest"]),
            "send_count": sends,
            "recv_count": receipts,
            "type": type_ if isinstance(type_, str) else None,
            "rpc_id": reading.long(body.get("msg_id")),
            "in_reply_to": reading.long(body.get("in_reply_to")),
            "sent_ns": at_ns if is_send else None,
            "received_ns": received_ns,
            "latency_ns": took_ns,
            "body_json": orjson.dumps(body).decode() if is_send else None,
        }


# ---------------------------------------------------------------- the rest


def _run(run: FoundRun, told: Told) -> Row:
    asked, results, sweep = told.settings, told.results, run.sweep
    # Only the embedded bench writes options.
    is_embedded = run.files.options and not told.options
    return vars(asked) | {
        "engine": EMBEDDED if is_embedded else asked.engine,
        "source": run.folder,
        "valid": CRASHED if results.crashed else results.valid,
        "node_count": None if asked.nodes is None else len(asked.nodes),
        "sweep": sweep.sweep if sweep else None,
        "cell_json": json.dumps(sweep.cell, sort_keys=True) if sweep else None,
        "repetition": sweep.repetition if sweep else None,
        "bad_error_types": results.bad_error_types,
        "error_types": results.error_types,
        "options_json": json.dumps(told.options) if told.options else None,
        "network_json": json.dumps(results.net) if results.net else None,
    }


def anomalies(results: Results, write: Callable[[Any], str]) -> Iterator[Row]:
    """Rows of the anomalies table: one for each instance, which `write` makes a text."""
    return (
        {
            "type": each.type,
            "invalidating": each.invalidating,
            "count": len(each.instances) if each.count is None else each.count,
            "number": number,
            "key": key,
            "instance": write(instance),
        }
        for each in results.anomalies()
        for number, (key, instance) in enumerate(each.instances)
    )


def _figures(figures: Figures) -> Iterator[Row]:
    yield from (
        {"figure": name, "value": float(value)}
        for name, value in figures.numbers.items()
        if value is not None
    )
    causes = ((BY_CAUSE, row["cause"], row) for row in figures.table("causes"))
    types = ((BY_TYPE, f"{row['link']} {row['type']}", row) for row in figures.table("by_type"))
    yield from (
        {"figure": figure, "of": of, "value": row["messages_per_operation"] or 0.0}
        for figure, of, row in chain(causes, types)
    )
