"""The timeline: one page on which every operation is a bar, in the column of its process.

Each invocation and each completion has a row of its own, whatever time lies between them, so that
short operations stay readable beside long ones; the margin shows the time. Bars beside each other
were concurrent. The page holds the first operations only: a browser cannot show 100 000 bars.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runs.faults import injections
from runs.history import NEMESIS, Op
from runs.operations import Operation, operations
from runs.plots import style

FIRST_OPERATIONS = 1000
_TICK_ROWS = 25
_LABEL_CHARACTERS = 60
_MARKS = {"ok": "✓", "fail": "✗", "info": "?"}


def timeline_html(
    history: Sequence[Op],
    name: str,
    concurrency: int | None = None,
    limit: int = FIRST_OPERATIONS,
) -> str:
    """The first `limit` operations as a self-contained HTML page; it says how many it leaves out.

    `concurrency` is the number of workers (a process that is replaced shares the column of its
    successor, which is `concurrency` higher); without it every process has its own column.
    """
    total = sum(op.type == "invoke" and op.process != NEMESIS for op in history)
    shown = _beginning(history, limit)
    rows = {id(op): row for row, op in enumerate(shown)}
    columns = _columns(shown, concurrency)
    lanes = list(_lanes(shown))
    return style.render(
        "timeline.html.j2",
        name=name,
        bars=[_bar(each, rows, columns, len(shown)) for each in operations(shown)],
        processes=_headings(columns),
        column_count=max(columns.values(), default=-1) + 1,
        faults=lanes,
        lane_count=1 + max((lane["lane"] for lane in lanes), default=-1),
        ticks=[(row, f"{shown[row].time / 1e9:.3f} s") for row in range(0, len(shown), _TICK_ROWS)],
        row_count=len(shown),
        shown=min(limit, total),
        total=total,
        marks=_MARKS,
        meanings={type_: style.OUTCOME_MEANINGS[type_] for type_ in _MARKS},
    )


def _beginning(history: Sequence[Op], limit: int) -> list[Op]:
    """The history up to the last completion of its first `limit` operations, without later ones."""
    shown = []
    open_processes: set[Any] = set()
    invoked = 0
    for op in history:
        if op.process == NEMESIS:
            shown.append(op)
        elif op.type == "invoke" and invoked < limit:
            invoked += 1
            open_processes.add(op.process)
            shown.append(op)
        elif op.type != "invoke" and op.process in open_processes:
            open_processes.discard(op.process)
            shown.append(op)
        if invoked == limit and not open_processes:
            break
    return shown


def _columns(shown: Sequence[Op], concurrency: int | None) -> dict[Any, int]:
    """Processes to columns: one for each worker, whose processes follow one another."""
    processes = sorted({op.process for op in shown if op.process != NEMESIS}, key=_number)
    workers = {process: _number(process) % (concurrency or sys.maxsize) for process in processes}
    order = sorted(set(workers.values()))
    return {process: order.index(worker) for process, worker in workers.items()}


def _number(process: Any) -> int:
    return int(process)


def _headings(columns: Mapping[Any, int]) -> list[str]:
    """Who has been in each column, one after another."""
    headings: dict[int, list[str]] = {}
    for process, column in columns.items():
        headings.setdefault(column, []).append(str(process))
    return [", ".join(headings[column]) for column in sorted(headings)]


def _bar(
    operation: Operation, rows: Mapping[int, int], columns: Mapping[Any, int], end: int
) -> dict[str, Any]:
    first = rows[id(operation.invoked)]
    last = rows[id(operation.completed)] if operation.completed else end - 1
    return {
        "type": _type(operation),
        "row": first,
        "rows": max(last - first, 1),
        "column": columns[operation.invoked.process],
        "label": _label(operation),
        "text": _text(operation),
    }


def _type(operation: Operation) -> str:
    """ok, fail or info; nobody knows what became of an operation that never completed."""
    return operation.outcome if operation.completed else "info"


def _label(operation: Operation) -> str:
    """The function and its value; a single micro-operation need not repeat its name."""
    f, value = operation.invoked.f, operation.last.value
    match value:
        case [[name, *arguments]] if name == f:
            value = " ".join(map(_compact, arguments))
        case _:
            value = _compact(value)
    return _shorten(f"{f} {value}")


def _text(operation: Operation) -> str:
    """Everything about the operation, for the tooltip and for screen readers."""
    invoked = operation.invoked
    parts = [
        f"process {invoked.process}: {invoked.f}, {_type(operation)}",
        f"index {invoked.index}",
    ]
    parts.append(f"invoked at {invoked.time / 1e9:.6f} s: {_compact(invoked.value)}")
    if operation.completed:
        latency_ms = (operation.completed.time - invoked.time) / 1e6
        parts.append(f"completed after {latency_ms:.3f} ms: {_compact(operation.completed.value)}")
        parts += [f"{key}: {_compact(value)}" for key, value in operation.completed.extra.items()]
    else:
        parts.append("not completed")
    return "\n".join(parts)


def _lanes(shown: Sequence[Op]) -> Iterator[dict[str, Any]]:
    """Faults as bars over the rows of the time in which they were in force, a lane for each kind."""
    found = injections(shown)
    kinds = list(dict.fromkeys(each.fault for each in found))
    for each in found:
        inside = [row for row, op in enumerate(shown) if each.start_ns <= op.time <= each.end_ns]
        yield {
            "name": each.fault,
            "text": each.text,
            "colour": style.fault_colour(each.fault),
            "lane": kinds.index(each.fault),
            "row": inside[0],
            "rows": inside[-1] - inside[0] + 1,
        }


def _compact(value: Any) -> str:
    return "" if value is None else json.dumps(value, separators=(",", ":"), default=str)


def _shorten(text: str) -> str:
    if len(text) <= _LABEL_CHARACTERS:
        return text.rstrip()
    return text[: _LABEL_CHARACTERS - 1] + "…"
