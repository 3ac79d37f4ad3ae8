"""The timeline: one page on which every operation is a bar, in the column of its process.

Each invocation and each completion has a row of its own, whatever time lies between them, so that
short operations stay readable beside long ones; the margin shows the time. Bars beside each other
were concurrent. A browser cannot show 100 000 bars, so the page holds a part of the run: some operations
in a row, and wherever they are, those that show an anomaly, each with what went on around it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from runs.faults import injections
from runs.history import NEMESIS, Op, completions
from runs.operations import operation_count
from runs.plots import style

PART = 1000  # operations in a row
_AROUND = 40  # operations before and after one of an anomaly
_TICK_ROWS = 25
_GAP_ROWS = 5  # of the sentence that says what is left out
_LABEL_CHARACTERS = 60
_MARKS = {"ok": "✓", "fail": "✗", "info": "?"}

Anomalies = Mapping[str, Sequence[int]]  # by type: the indices in the history of what shows one


def timeline_html(
    history: Sequence[Op],
    name: str,
    concurrency: int | None = None,
    anomalies: Anomalies | None = None,
    *,
    first: int = 0,
    limit: int = PART,
) -> str:
    """A part of the run as a self-contained HTML page, which says what it leaves out.

    Args:
        history: of the whole run.
        name: of the run.
        concurrency: the number of workers (a process that is replaced shares the column of its successor,
            which is `concurrency` higher); without it every process has its own column.
        anomalies: what shows them; these operations are on the page, wherever they are.
        first: the number of the first operation shown, from 0 in order of invocation.
        limit: how many are shown from there on.
    """
    marked = {index for indices in (anomalies or {}).values() for index in indices}
    total = operation_count(history)
    shown, rows, gaps = _parts(history, range(first, min(first + limit, total)), marked)
    after_gaps = {row + _GAP_ROWS for row, _ in gaps}
    columns = _columns(shown, concurrency)
    lanes = _lanes(history, shown, rows)
    pairs = completions(shown)
    done = [
        (op, shown[pairs[at]] if at in pairs else None)
        for at, op in enumerate(shown)
        if op.type == "invoke" and op.process != NEMESIS
    ]
    row_count = max(rows.values(), default=-1) + 1
    column_count = max(columns.values(), default=-1) + 1
    return style.render(
        "timeline.html.j2",
        name=name,
        bars=[_bar(each, rows, columns, row_count, marked) for each in done],
        processes=[
            ", ".join(str(process) for process, its in columns.items() if its == column)
            for column in range(column_count)
        ],
        column_count=column_count,
        faults=lanes,
        lane_count=1 + max((lane["lane"] for lane in lanes), default=-1),
        ticks=[
            (rows[id(op)], f"{op.time / 1e9:.3f} s")
            for at, op in enumerate(shown)
            if rows[id(op)] in after_gaps or at % _TICK_ROWS == 0
        ],
        gaps=gaps,
        gap_rows=_GAP_ROWS,
        row_count=row_count,
        anomalies={
            type_: [
                (op.index, f"{op.type} {op.f} at {op.time / 1e9:.3f} s")
                for op in sorted(shown, key=lambda op: op.index)
                if op.index in indices
            ]
            for type_, indices in (anomalies or {}).items()
        },
        first=first + 1,
        last=min(first + limit, total),
        shown=len(done),
        total=total,
        marks=_MARKS,
        meanings={type_: style.OUTCOME_MEANINGS[type_] for type_ in _MARKS},
    )


def _parts(
    history: Sequence[Op], chosen: range, marked: set[int]
) -> tuple[list[Op], dict[int, int], list[tuple[int, int]]]:
    """The lines that are shown, the row of each by its id, and where operations are left out, how many.

    What a fault does is shown beside the operation that was invoked before it.
    """
    numbers: list[int] = []  # of each line of the history: its operation, in order of invocation
    latest, current = -1, dict[Any, int]()
    for op in history:
        if op.process != NEMESIS and op.type == "invoke":
            latest += 1
            current[op.process] = latest
        numbers.append(current.get(op.process, max(latest, 0)))
    wanted = {*chosen}
    for op, number in zip(history, numbers, strict=True):
        if op.index in marked:
            wanted.update(range(number - _AROUND, number + _AROUND + 1))
    shown: list[Op] = []
    rows, gaps = dict[int, int](), list[tuple[int, int]]()
    expected = row = 0
    for op, number in zip(history, numbers, strict=True):
        if number in wanted:
            if number > expected:
                gaps.append((row, number - expected))
                row += _GAP_ROWS
            shown.append(op)
            rows[id(op)] = row
            row += 1
            expected = max(expected, number + 1)
    return shown, rows, gaps


def _columns(shown: Sequence[Op], concurrency: int | None) -> dict[Any, int]:
    """Processes to columns: one for each worker, whose processes follow one another."""
    processes = sorted({op.process for op in shown if op.process != NEMESIS}, key=int)
    workers = {process: int(process) % (concurrency or sys.maxsize) for process in processes}
    order = sorted(set(workers.values()))
    return {process: order.index(worker) for process, worker in workers.items()}


def _bar(
    operation: tuple[Op, Op | None],
    rows: Mapping[int, int],
    columns: Mapping[Any, int],
    end: int,
    marked: set[int],
) -> dict[str, Any]:
    """How an operation is drawn, from its two halves; `ids` are its indices that a link may lead to."""
    invoked, completed = operation
    first = rows[id(invoked)]
    last = rows[id(completed)] if completed else end - 1
    return {
        "type": _type(completed),
        "row": first,
        "rows": max(last - first, 1),
        "column": columns[invoked.process],
        "label": _label(invoked.f, (completed or invoked).value),
        "text": _text(invoked, completed),
        "ids": [op.index for op in operation if op and op.index in marked],
    }


def _type(completed: Op | None) -> str:
    """ok, fail or info; nobody knows what became of an operation that never completed."""
    return completed.type if completed else "info"


def _label(f: str, value: Any) -> str:
    """The function and its value; a single micro-operation need not repeat its name."""
    match value:
        case [[name, *arguments]] if name == f:
            value = " ".join(map(_compact, arguments))
        case _:
            value = _compact(value)
    return style.cut(f"{f} {value}".rstrip(), _LABEL_CHARACTERS)


def _text(invoked: Op, done: Op | None) -> str:
    """Everything about the operation, for the tooltip and for screen readers."""
    parts = ["not completed"]
    if done:
        latency_ms = (done.time - invoked.time) / 1e6
        parts = [f"completed after {latency_ms:.3f} ms: {_compact(done.value)}"]
        parts += [f"{key}: {_compact(value)}" for key, value in done.extra.items()]
    began = [
        f"process {invoked.process}: {invoked.f}, {_type(done)}",
        f"index {invoked.index}",
        f"invoked at {invoked.time / 1e9:.6f} s: {_compact(invoked.value)}",
    ]
    return "\n".join(began + parts)


def _lanes(
    history: Sequence[Op], shown: Sequence[Op], rows: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Faults as bars over the rows of the time in which they were in force, a lane for each kind."""
    inside = [
        (each, places)
        for each in injections(history)
        if (places := [rows[id(op)] for op in shown if each.start_ns <= op.time <= each.end_ns])
    ]
    kinds = list(dict.fromkeys(each.fault for each, _ in inside))
    return [
        {
            "name": each.fault,
            "text": each.text,
            "colour": style.fault_colour(each.fault),
            "lane": kinds.index(each.fault),
            "row": places[0],
            "rows": places[-1] - places[0] + 1,
        }
        for each, places in inside
    ]


def _compact(value: Any) -> str:
    return "" if value is None else json.dumps(value, separators=(",", ":"), default=str)
