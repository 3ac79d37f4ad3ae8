"""The page of a run: everything that is known of it, ready for the template; and its logs, page by page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.judgement import Findings
from bench.pages import pictures, render
from bench.pages.facts import VERDICTS, Facts, Shelf
from runs.faults import describe
from runs.plots.run import kinds_of
from runs.plots.style import LINKS
from runs.store import Folder
from runs.traffic import disagreements

TAIL_BYTES, TAIL_LINES = 8192, 15
PAGE_BYTES = 128 * 1024
_LONGEST_LINE = 64 * 1024


def run_values(shelf: Shelf, run: Folder) -> dict[str, Any]:
    """The values of `run.html.j2`."""
    facts, findings, figures = shelf.facts(run), shelf.findings(run), shelf.figures(run)
    faults = figures.table("faults")
    return {
        "facts": facts,
        "figures": figures,
        "verdict": VERDICTS[facts.verdict],
        "reason": reason(facts, findings),
        "findings": findings,
        "told": {each.type for each in findings.found},
        "lamport": shelf.lamport(run),
        "disagreements": disagreements(facts.net, figures.table("network")),
        "links": LINKS,
        "plots": {
            "latency": pictures.latency_over_time(figures),
            "throughput": pictures.throughput(figures),
            "types": pictures.server_messages(figures),
            "classes": pictures.message_classes(figures),
        },
        "faults": [(row, fault_text(row)) for row in faults],
        "lanes": len(kinds_of(faults)) > 1,
        "logs": logs(run),
        "files": listing(run),
    }


@dataclass(frozen=True)
class Reason:
    """Why a run is invalid: an anomaly or a check that the page tells of, and one case in a sentence."""

    name: str
    sentence: str


def reason(facts: Facts, findings: Findings) -> Reason | None:
    """The first that makes the run invalid; None for any other verdict, and where nobody knows."""
    if facts.verdict != "invalid":
        return None
    told = [Reason(each.type, each.sentence) for each in findings.found if each.invalidating]
    counted = [
        Reason(each.type, f"{render.count(each.count)} found.")
        for each in facts.anomalies
        if each.invalidating
    ]
    failed = [Reason(each.name, each.numbers) for each in facts.checks]
    return next(iter([*told, *counted, *failed]), None)


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
            "tail": _tail(file),
        }
        for file in run.logs
    ]


def _tail(file: Path) -> str:
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - TAIL_BYTES))
        lines = stream.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:])


@dataclass(frozen=True)
class LogPage:
    """Whole lines where lines are not absurdly long; every line is on exactly one page."""

    text: str
    page: int
    pages: int
    size_bytes: int


def read_page(file: Path, page: int) -> LogPage | None:
    """Page number `page`, from 1; None where there is no such page.

    A line belongs to the page in which it begins.
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
    return LogPage(data.decode(errors="replace"), page, pages, size)


def listing(run: Folder) -> list[tuple[str, int]]:
    """The run's files with their sizes, logs and stripes left out."""
    found = [file for file in run.path.iterdir() if file.is_file() and not file.is_symlink()]
    return sorted((file.name, file.stat().st_size) for file in found if file.name[0] != ".")
