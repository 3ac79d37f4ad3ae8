"""The list of runs, and the criteria by which it is made shorter."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.pages.facts import VERDICTS, Check, Facts, Shelf
from bench.pages.run_page import in_short
from bench.verdict.kept import Findings, kept_findings
from runs.facts import mapping
from runs.figures import Figures, kept

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
    asked = (kind for each in facts for kind in each.settings.faults or ())
    faults = {*asked, *(kind for _, figures in rows for kind in seen(figures))}
    return {
        "verdict": [word for word in VERDICTS if any(each.verdict == word for each in facts)],
        "program": _words(each.settings.program for each in facts),
        "workload": _words(each.settings.workload for each in facts),
        "fault": [*sorted(faults), "none"] if faults else [],
        "sweep": _words(each.sweep for each in facts),
    }


def _words(values: Iterable[str | None]) -> list[str]:
    return sorted({value for value in values if value})
