"""The page of a run: everything that is known of it, ready for the template."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from pages import pictures
from pages.facts import VERDICTS
from pages.library import Library
from plots.picture import kinds_of
from plots.style import LINKS
from runs.faults import describe
from runs.figures import Figures
from runs.messages import disagreements
from runs.store import Folder

TAIL_BYTES, TAIL_LINES = 8192, 15
NO_TILE = (
    "crash",
    "assign",
    "debug-topic-partitions",
)  # operations that are no requests of interest


def run_values(library: Library, run: Folder, figures: Figures | None = None) -> dict[str, Any]:
    """The values of `run.html.j2`; `figures` are those of the library, unless they are given."""
    facts, findings = library.facts(run), library.findings(run)
    figures = figures or library.figures(run)
    return {
        "facts": facts,
        "figures": figures,
        "verdict": VERDICTS[facts.verdict],
        "findings": findings,
        "told": {each.type for each in findings.found},
        "lamport": library.lamport(run),
        "disagreements": disagreements(facts.net, figures.network),
        "tiles": tiles(figures),
        "links": LINKS,
        "plots": {
            "latency": pictures.latency_over_time(figures),
            "throughput": pictures.throughput(figures),
            "types": pictures.server_messages(figures),
            "classes": pictures.message_classes(figures),
        },
        "faults": [(row, fault_text(row)) for row in figures.faults],
        "lanes": len(kinds_of(figures.faults)) > 1,
        "logs": logs(run),
        "files": listing(run),
    }


def fault_text(row: Mapping[str, Any]) -> str:
    """What a fault did, in the words of the verdict."""
    intent, effect = (
        orjson.loads(row[name]) if row[name] else None for name in ("target_json", "effect_json")
    )
    return describe(row["kind"], intent, effect)


def tiles(figures: Figures) -> list[tuple[str, dict[str, Any]]]:
    """The kinds of operations worth a tile, with their quantiles."""
    chosen = [(f, figures.quantiles(f)) for f in figures.kinds() if f not in NO_TILE]
    return [(f, row) for f, row in chosen if row]


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


def listing(run: Folder) -> list[tuple[str, int]]:
    """The run's files with their sizes, logs and stripes left out."""
    found = [file for file in run.path.iterdir() if file.is_file() and not file.is_symlink()]
    return sorted((file.name, file.stat().st_size) for file in found if file.name[0] != ".")
