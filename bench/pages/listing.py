"""What the pages show, ready for their templates: one run and its logs; the list; two runs; a sweep."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

import workloads
from bench.pages import pictures, render
from bench.pages.facts import VERDICTS, Check, Facts, Shelf
from bench.sweep.axes import LABEL
from bench.sweep.table import OF_PROGRAM, median, ran, ranked
from bench.verdict.kept import Findings, kept_findings
from runs import sweeps
from runs.facts import Told, mapping, repeated
from runs.faults import describe
from runs.figures import ALL, Figures, kept, number_of
from runs.files import SWEEP_INDEX, end_of
from runs.oddities import oddities
from runs.plots.groups import dots, message_classes, server_messages
from runs.plots.run import kinds_of
from runs.plots.style import LINKS
from runs.store import Folder
from runs.sweeps import Cell, cells
from runs.traffic import disagreements

TAIL_BYTES, TAIL_LINES = 8192, 15
PAGE_BYTES = 128 * 1024
_LONGEST_LINE = 64 * 1024


def run_values(shelf: Shelf, run: Folder) -> dict[str, Any]:
    """The values of `run.html.j2`."""
    facts, findings, figures = shelf.facts(run), shelf.findings(run), shelf.figures(run)
    faults, odd = figures.table("faults"), oddities(figures, facts.node_count)
    return {
        "facts": facts,
        "figures": figures,
        "verdict": VERDICTS[facts.verdict] + " What is odd stands below." * bool(odd),
        "reason": reason(facts, findings),
        "findings": findings,
        "counted": workload_figures(facts.told),
        "odd": odd,
        "repeat": repeated(facts.told.options),
        "told": {each.type for each in findings.found},
        "lamport": shelf.lamport(run),
        "disagreements": disagreements(facts.told.results.net, figures.table("network")),
        "links": LINKS,
        "plots": {
            "latency": pictures.latency_over_time(figures),
            "throughput": pictures.throughput(figures),
            "types": pictures.svg(
                server_messages(figures.table("by_type")), "server messages per operation, by type"
            ),
            "classes": pictures.svg(
                message_classes(figures.table("by_type")),
                "messages per operation, by class of link",
            ),
        },
        "faults": [(row, fault_text(row)) for row in faults],
        "lanes": len(kinds_of(faults)) > 1,
        "logs": logs(run),
        "files": listing(run),
    }


def reason(facts: Facts, findings: Findings) -> Check | None:
    """The first anomaly or check that makes the run invalid, which the page tells of, with one case.

    None for any other verdict, and where nobody knows.
    """
    told = [Check(each.type, each.sentence) for each in findings.found if each.invalidating]
    counted = [
        Check(each.type, f"{render.count(each.count)} found.")
        for each in facts.anomalies
        if each.invalidating
    ]
    known = [*told, *counted, *(each for each in facts.checks if each.failed)]
    return known[0] if known and facts.verdict == "invalid" else None


def in_short(facts: Facts, findings: Findings) -> Check | None:
    """Why a run is not valid, for the list: a name, or what stopped it, and the sentence."""
    if facts.verdict in ("valid", "invalid"):
        found = reason(facts, findings)
        is_check = found in facts.checks  # whose name says nothing to who reads a list
        said = is_check and found and found.sentence.partition(":")[0]
        return replace(found, name=said) if found and said else found
    first = (facts.error or "").partition("\n")[0].rstrip(":")
    return Check(first, str(facts.error)) if first else None


def workload_figures(told: Told) -> str:
    """What the workload's checker counted, as the verdict says it; empty where it counts nothing."""
    name, result = told.settings.workload, told.results.workload
    figures = workloads.judge(name).figures if name in workloads.NAMES else None
    if figures and result:
        with suppress(LookupError, TypeError, ValueError, AttributeError):  # of another form
            return figures(result)
    return ""


def fault_text(row: Mapping[str, Any]) -> str:
    """What a fault did, in the words of the verdict."""
    intent, effect = (
        orjson.loads(row[name]) if row[name] else None for name in ("target_json", "effect_json")
    )
    return describe(row["kind"], intent, effect)


def logs(run: Folder) -> list[dict[str, Any]]:
    """Each log: its name in the run, its size, its last lines."""
    return [
        {
            "name": file.relative_to(run.path).as_posix(),
            "size": file.stat().st_size,
            "tail": "\n".join(end_of(file, TAIL_BYTES).splitlines()[-TAIL_LINES:]),
        }
        for file in run.logs
    ]


def read_page(file: Path, page: int) -> dict[str, Any] | None:
    """Page number `page` of a log, from 1: text, page, pages, bytes; None where there is no such page.

    It has whole lines where lines are not absurdly long. A line is on the page in which it begins.
    """
    size = file.stat().st_size
    pages = max(1, -(-size // PAGE_BYTES))
    if not 1 <= page <= pages:
        return None
    start, end = (page - 1) * PAGE_BYTES, page * PAGE_BYTES
    with file.open("rb") as stream:
        stream.seek(max(start - 1, 0))
        if start:
            stream.readline(_LONGEST_LINE)  # the end of a line of the page before
        data = stream.read(end - stream.tell()) if stream.tell() < end else b""
        if data and not data.endswith(b"\n"):
            data += stream.readline(_LONGEST_LINE)
    return {"text": data.decode(errors="replace"), "page": page, "pages": pages, "bytes": size}


def listing(run: Folder) -> list[tuple[str, int]]:
    """The run's files with their sizes, logs and stripes left out."""
    found = [file for file in run.path.iterdir() if file.is_file() and not file.is_symlink()]
    return sorted((file.name, file.stat().st_size) for file in found if file.name[0] != ".")


# ---------------------------------------------------------------- the list of runs


ROWS = 500
BUDGET_S = 1.0  # for computing what the list lacks; the rest comes with the next request
CRITERIA = ("q", "verdict", "program", "workload", "fault", "sweep")

Listed = tuple[Facts, Figures | None]


def list_values(
    shelf: Shelf,
    asked: Mapping[str, str],
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """The values of `runs.html.j2`.

    Args:
        shelf: the store.
        asked: the criteria by name; an empty one asks for nothing.
        budget_s: how long it may compute what the list lacks.
        clock: seconds, to keep to the budget.
    """
    chosen = {name: asked.get(name, "").strip() for name in CRITERIA}
    runs = shelf.store.runs()
    end_s = clock() + budget_s
    known = [(run, shelf.facts(run)) for run in runs]
    found: list[Listed] = []
    why: dict[str, Check | None] = {}
    left_out = pending = 0
    for run, facts in known:
        if not _may_match(facts, chosen):
            continue
        if len(found) == ROWS:
            left_out += 1
            continue
        figures = shelf.figures(run) if clock() < end_s else kept(run)
        pending += figures is None
        if _has_fault(facts, figures, chosen["fault"]):
            found.append((facts, figures))
            why[facts.name] = in_short(facts, kept_findings(run) or Findings())
    wrong = {_ran(facts) for _, facts in known if facts.verdict == "invalid"}
    return {
        "rows": [(*row, figures_of(*row), _ran(row[0]) in wrong) for row in found],
        "why": why,
        "total": len(runs),
        "left_out": left_out,
        "pending": pending,
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "choices": _choices([facts for _, facts in known], found),
        "sweeps": sorted({facts.sweep for _, facts in known if facts.sweep}),
    }


def _ran(facts: Facts) -> tuple[str | None, str | None]:
    """What ran: of one workload, runs of the same program can be compared with those of another."""
    return facts.settings.workload, facts.settings.program


def _may_match(facts: Facts, chosen: Mapping[str, str]) -> bool:
    asked = facts.settings
    values = {
        "verdict": facts.verdict,
        "program": asked.program,
        "workload": asked.workload,
        "sweep": facts.sweep,
    }
    if any(chosen[name] and value != chosen[name] for name, value in values.items()):
        return False
    parts = [
        facts.name,
        *(asked.faults or ()),
        *(f"{name} {value}" for name, value in facts.named()),
        *(each.type for each in facts.anomalies),
        *map(str, facts.told.options.get("argv") or ()),
    ]
    searched = " ".join(parts).lower()
    return all(word in searched for word in chosen["q"].lower().split())


def figures_of(facts: Facts, figures: Figures | None) -> dict[str, Any]:
    """What the list shows of a run's figures; None stands for unknown."""
    numbers = (figures or Figures()).numbers
    reported = mapping(facts.told.results.net.get("servers"))  # until it is measured
    asked = figures.asked() if figures else {}
    of = "send" if "send" in asked else next(iter(asked), "")
    return {
        "faults": facts.faults(seen(figures)),
        "rate": numbers.get("throughput_ops_per_s"),
        "servers": numbers.get("server_messages_per_op", reported.get("msgs-per-op")),
        "p99_ns": asked[of]["latency_ns_p99"] if of else None,
        "of": of,
    }


def seen(figures: Figures | None) -> list[str]:
    """The kinds of faults that a run had."""
    return sorted({row["kind"] for row in figures.table("faults")}) if figures else []


def _has_fault(facts: Facts, figures: Figures | None, fault: str) -> bool:
    kinds = facts.settings.faults or seen(figures)
    return not fault or (fault in kinds if fault != "none" else not kinds)


def _choices(facts: Sequence[Facts], rows: Iterable[Listed]) -> dict[str, list[str]]:
    faults = {kind for each in facts for kind in each.settings.faults or ()}
    faults |= {kind for _, figures in rows for kind in seen(figures)}
    return {
        "verdict": [word for word in VERDICTS if any(each.verdict == word for each in facts)],
        "program": _words(each.settings.program for each in facts),
        "workload": _words(each.settings.workload for each in facts),
        "fault": [*sorted(faults), "none"] if faults else [],
        "sweep": _words(each.sweep for each in facts),
    }


def _words(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value})


# ---------------------------------------------------------------- two runs compared


def compare_values(shelf: Shelf, one: Folder, other: Folder) -> dict[str, Any]:
    """The values of `compare.html.j2`, of two runs; those of two workloads have no figures to compare."""
    first, second = facts = shelf.facts(one), shelf.facts(other)
    figures = shelf.figures(one), shelf.figures(other)
    frame = pictures.frame(figures)
    alike = len({each.settings.workload for each in facts} - {None}) < 2
    return {
        "both": facts,
        "names": [each.name for each in facts],
        "alike": alike,
        "options": differing_options(first.told.options, second.told.options),
        "rows": figure_rows(facts, figures) if alike else (),
        "types": type_rows(figures) if alike else (),
        "plots": [pictures.latency_over_time(each, frame) for each in figures if alike],
    }


_NUMBERS = (
    ("throughput_ops_per_s", "operations per second", render.rate),
    ("server_messages_per_op", "server messages per operation", render.ratio),
)
# What differs between any two runs and explains nothing.
_NOISE = ("started", "argv", "history_origin_ns", "node_cpu_s", "store", "load")


def differing_options(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[dict[str, str]]:
    """Options of test.json that are not the same, by name."""
    flat = [_flat(options) for options in (first, second)]
    names = sorted(flat[0].keys() | flat[1].keys())
    rows = [(name, *(each.get(name, render.NONE) for each in flat)) for name in names]
    return [{"name": name, "a": a, "b": b} for name, a, b in rows if a != b]


def _flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name in (name for name in options if prefix or name not in _NOISE):
        path, value = prefix + name, options[name]
        found |= _flat(value, f"{path}.") if isinstance(value, dict) else {path: _shown(value)}
    return found


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return render.NONE if value is None else str(value)


def figure_rows(
    facts: tuple[Facts, Facts], figures: tuple[Figures, Figures]
) -> list[dict[str, Any]]:
    """Figures of both runs as rows: name, both values as text, and the second over the first."""
    rows = [
        _row("operations", [each.operations for each in figures], render.count),
        *(
            _row(title, [each.numbers.get(name) for each in figures], shown)
            for name, title, shown in _NUMBERS
        ),
    ]
    asked = [each.asked() for each in figures]
    for f in dict.fromkeys(f for each in asked for f in each):
        quantiles = [each.get(f, {}) for each in asked]
        for name in ("p50", "p90", "p99", "max"):
            values = [row.get(f"latency_ns_{name}") for row in quantiles]
            rows.append(_row(f"{f}, {name}, ms", values, render.milliseconds))
    for outcome in ("fail", "info"):
        values = [
            sum(r["operation_count"] for r in each.latency(ALL) if r["outcome"] == outcome)
            for each in figures
        ]
        rows.append(_row(f"operations that ended {outcome}", values, render.count))
    counted = [{each.type: each.count for each in both.anomalies} for both in facts]
    for type_ in dict.fromkeys(chain(*counted)):
        counts = [each.get(type_, 0) for each in counted]
        rows.append(_row(f"anomalies: {type_}", counts, render.count))
    return rows


def type_rows(figures: tuple[Figures, Figures]) -> list[dict[str, Any]]:
    """Server messages per operation by type, the most numerous first."""
    by_type = [
        {
            f"{r['type']} ({r['link']})": r["messages_per_operation"]
            for r in each.table("by_type")
            if r["link"] != "client"
        }
        for each in figures
    ]
    names = by_type[0].keys() | by_type[1].keys()
    rows = {name: [each.get(name) or 0.0 for each in by_type] for name in names}
    order = sorted(rows, key=lambda name: (-max(rows[name]), name))
    return [_row(name, rows[name], render.ratio) for name in order]


def _row(name: str, values: Iterable[Any], shown: Callable[[Any], str]) -> dict[str, Any]:
    a, b = values
    over = f"{b / a:.2f}" if a and b is not None else render.NONE
    return {"name": name, "a": shown(a), "b": shown(b), "ratio": over}


# ---------------------------------------------------------------- a sweep


SHOWN = (
    "server_messages_per_op",
    "store_requests_per_op",
    "throughput_ops_per_s",
    "stable_median_ms",
    "stable_most_ms",
    "send_p50_ms",
    "send_p99_ms",
    "poll_p50_ms",
    "poll_p99_ms",
)
_PICTURES = {
    "messages": ("server_messages_per_op", "server messages per operation", "messages"),
    "p50": ("send_p50_ms", "median latency of a send", "ms"),
    "p99": ("send_p99_ms", "99 % of the sends were quicker than this", "ms"),
}
_LARGEST_INDEX = 64 * 2**20


def sweep_values(name: str, folder: Path) -> dict[str, Any]:
    """The values of `sweep.html.j2`, without its runs."""
    too_large = (folder / SWEEP_INDEX).stat().st_size > _LARGEST_INDEX
    entries = [] if too_large else list(sweeps.read(folder).values())
    ranks = ranked(cells(entries))
    found = [cell for cell, _ in ranks]
    axes = list(dict.fromkeys(axis for cell in found for axis in cell.axes))
    differing = [axis for axis in axes if len({str(c.axes.get(axis)) for c in found}) > 1]
    varying = [*differing, *["engine"] * (len({cell.engine for cell in found}) > 1)]
    if len({c.axes[LABEL] for c in found if LABEL in c.axes}) == len(found):
        varying = [LABEL]  # it says how a cell differs
    figures = [f for f in SHOWN if any(c.values(f) for c in found)]
    titles = (" · ".join(_word(cell, axis) for axis in varying) for cell in found)
    named = [
        ((name or "the only cell", str(ran(c)[1])), c)
        for name, c in zip(titles, found, strict=True)
    ]
    counts = Counter(entry.verdict for entry in entries)
    return {
        "name": name,
        "grade": sweeps.grade_of(folder),
        "axes": varying,
        "fixed": [
            (axis, _shown(found[0].axes.get(axis)))
            for axis in axes
            if axis not in {*differing, *varying}
        ],
        "cells": [
            {
                "words": [(_word(c, axis), wrong and axis in OF_PROGRAM) for axis in varying],
                "verdicts": _in_order(c.verdicts),
                "unexpected": not c.as_expected,
                "anomalies": c.signs,
                "figures": [median(c, figure) for figure in figures],
                "runs": [(e.repetition, e.run, e.verdict) for e in c.rows],
            }
            for c, wrong in ranks
        ],
        "marked": any(wrong for _, wrong in ranks),
        "anomalies": sorted({anomaly for cell in found for anomaly in cell.anomalies}),
        "columns": [number_of(figure).heading for figure in figures],
        "counts": _in_order(counts),
        "run_count": len(entries),
        "pictures": {
            picture: (
                title,
                pictures.svg(dots([(*who, c.values(figure)) for who, c in named], unit), title),
            )
            for picture, (figure, title, unit) in _PICTURES.items()
        },
    }


def _in_order(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(verdict, counts[verdict]) for verdict in sweeps.VERDICTS if verdict in counts]


def _word(cell: Cell, axis: str) -> str:
    return cell.engine if axis == "engine" else _shown(cell.axes.get(axis))
