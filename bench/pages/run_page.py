"""The page of one run."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

import workloads
from bench.pages import pictures, render
from bench.pages.facts import VERDICTS, Check, Facts, Shelf
from bench.verdict.kept import Findings
from runs.facts import Told, repeated
from runs.faults import describe
from runs.files import end_of
from runs.oddities import oddities
from runs.plots.groups import server_messages
from runs.plots.run import kinds_of
from runs.plots.style import LINKS
from runs.store import Folder

TAIL_BYTES, TAIL_LINES = 8192, 15


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
        "links": LINKS,
        "plots": {
            "latency": pictures.latency_over_time(figures)[0],
            "throughput": pictures.throughput(figures),
            "types": pictures.svg(
                server_messages(figures.table("by_type")), "server messages per operation, by type"
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


def listing(run: Folder) -> list[tuple[str, int]]:
    """The run's files with their sizes, logs and stripes left out."""
    found = [file for file in run.path.iterdir() if file.is_file() and not file.is_symlink()]
    return sorted((file.name, file.stat().st_size) for file in found if file.name[0] != ".")
