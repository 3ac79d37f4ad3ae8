"""The judgement of a history: what its checkers say, and what follows from that, in findings.

`judged` reads and judges the history of a run, or of a file alone, for `./maelstrom check` and for pages. A run
that has just ended is judged by `bench.verdict.checkers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import workloads
from bench.verdict.circumstances import with_circumstances
from runs.facts import mapping, options_of, unfinished
from runs.files import OPTIONS, RESULTS
from runs.history import NEMESIS, NS, Op, find_history, keywords, read_cut_history
from workloads.interface import UNKNOWN, Finding, Judge, Placement, Result
from workloads.recognition import candidates, operations

PLACED = "kafka"  # the workload whose strict check asks which node a process talked to


@dataclass(frozen=True)
class Judgement:
    """A history, the verdict of its checkers, and its sentences.

    `results`: as results.edn has them; of a history that is judged again `workload` alone. `unfinished` says
    why the run did not come to its end, if it did not. `place` says which node a process asked, if anything
    does.
    """

    history: Sequence[Op]
    results: Result
    judge: Judge
    findings: Sequence[Finding]
    place: Placement | None
    unfinished: str | None = None

    @property
    def result(self) -> Mapping[Any, Any]:
        """What the workload's checker says."""
        return mapping(self.results["workload"])

    @property
    def bad(self) -> list[str]:
        """The types of anomaly that make it invalid."""
        return [each.type for each in self.findings if each.invalidating]


def _of_asked(result: Mapping[Any, Any], history: Sequence[Op], limit_s: float | None) -> Result:
    """The result; unknown where clients asked nothing in the main phase: there was nothing to be wrong."""
    asked = (op.time for op in history if op.type == "invoke" and op.process != NEMESIS)
    was_asked = any(limit_s is None or time_ns < limit_s * NS for time_ns in asked)
    is_open = result["valid?"] is True and not was_asked
    return {**result, **keywords(valid=UNKNOWN, nothing_asked=True)} if is_open else dict(result)


def concluded(
    judge: Judge,
    result: Mapping[Any, Any],
    history: Sequence[Op],
    options: Mapping[str, Any],
    unfinished: str | None,
) -> Judgement:
    """The judgement that follows from what a workload's checker says; a checker that failed finds nothing."""
    if unfinished and "error" not in result:
        result = judge.so_far(result, history)
    result = _of_asked(result, history, options.get("time_limit_s"))
    place, findings = Placement.of(options, history), list[Finding]()
    if "error" not in result:
        findings = with_circumstances(
            judge.findings(result, history, place, finished=not unfinished), history
        )
    return Judgement(history, keywords(workload=result), judge, findings, place, unfinished)


def judged(
    file: Path,
    *,
    workload: str | None = None,
    strict: bool | None = None,
    consistency_models: Sequence[str] | None = None,
    node_count: int | None = None,
    concurrency: int | None = None,
    as_whole: bool = False,
) -> Judgement:
    """Judge the history of a run's folder, or a file alone.

    Args:
        file: either.
        workload, consistency_models: else those that the run's files, its folder or the operations say.
        strict: None: as the run was, where its files say which node a process talked to.
        node_count, concurrency: for `strict` of kafka, else those of the run.
        as_whole: a history without its run is that of a whole one, as for the real tool's checker.
    Raises:
        HistoryError: it cannot be read.
        click.UsageError: the workload, or what `strict` needs, cannot be told.
    """
    path = find_history(file)
    recorded = options_of(path.parent) or {}
    history, is_torn = read_cut_history(path)
    name = workload or _workload(path, recorded, history)
    models = consistency_models or recorded.get("consistency_models")
    if strict is None:
        strict = all(recorded.get(each) for each in ("strict", "nodes", "concurrency"))
    is_placed = strict and name == PLACED
    options = {
        **recorded,
        "strict": strict,
        "consistency_models": models,
        **(_placement(path, recorded, node_count, concurrency) if is_placed else {}),
    }
    judge = workloads.judge(name)
    result: Mapping[Any, Any] = judge.check(history, options)
    has_results = any(path.with_name(each).exists() for each in RESULTS)
    known = unfinished(path.parent) or ("Its last line is torn." if is_torn else None)
    early = None if has_results else judge.stops_early(history)
    if known and history and not has_results and not early and result["valid?"] is True:
        known = None  # all was read before the bench was stopped
    return concluded(judge, result, history, options, known or (None if as_whole else early))


def _workload(path: Path, recorded: Mapping[str, Any], history: Sequence[Op]) -> str:
    """The workload by the run's options, by the folder in which both tools keep runs, or by what was done."""
    for name in (recorded.get("workload"), path.absolute().parent.parent.name):
        if name in workloads.NAMES:
            return str(name)
    found = candidates(history)
    if len(found) == 1:
        return found[0]
    done = ", ".join(sorted(operations(history)))
    why = f"Its operations ({done}) may be those of {', '.join(found)}."
    if not found:
        why = f"No workload has all of its operations ({done})."
    elif not done:
        why = "Its clients did nothing."
    raise click.UsageError(f"{why} Name the workload with -w.")


def _placement(
    path: Path, recorded: Mapping[str, Any], count: int | None, concurrency: int | None
) -> dict[str, Any]:
    nodes = [f"n{number}" for number in range(count)] if count else recorded.get("nodes")
    concurrency = concurrency or recorded.get("concurrency")
    if not nodes or not concurrency:
        raise click.UsageError(
            "--strict needs to know which process talked to which node, and"
            f" {path.with_name(OPTIONS)} does not say. Give --node-count and --concurrency."
        )
    return {"nodes": nodes, "concurrency": concurrency}
