"""The judgement of a history: what the workload's checker says, in sentences; and what a run keeps of it.

`judged` reads and judges the history of a run, or of a file alone, for `./maelstrom check` and for pages. A run
that has just ended is judged by `bench.checkers`, and told by `told`. The sentences stand in `findings.json` of
the run's folder, with the same fingerprint as its figures:

    {"format", "fingerprint", "found": [...], "note"}
"""

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson

import workloads
from bench.values import readable
from bench.why import with_circumstances
from runs.facts import Told, options_of, unfinished
from runs.files import FINDINGS, OPTIONS, RESULTS
from runs.history import HistoryError, Op, find_history, read_cut_history
from runs.reading import MIB
from runs.store import Folder
from runs.writing import write_whole
from workloads.interface import Finding, Judge, Placement
from workloads.recognition import candidates, operations

FORMAT = 1  # raise it when the same history would now be told otherwise
PLACED = "kafka"  # the workload whose strict check asks which node a process talked to
NAMING_TYPES = "kafka"  # the only workload whose results name types of anomalies
LIMIT_BYTES = 24 * MIB  # some 150 000 operations, ten seconds of checking


@dataclass(frozen=True)
class Judgement:
    """A history, the verdict of its checker, and its sentences.

    `unfinished` says why the run did not come to its end, if it did not. `place` says which node a process
    asked, if the run's files do.
    """

    history: Sequence[Op]
    result: Mapping[Any, Any]
    findings: Sequence[Finding]
    unfinished: str | None
    place: Placement | None

    @property
    def bad(self) -> list[str]:
        """The types of anomaly that make it invalid."""
        return [each.type for each in self.findings if each.invalidating]


def told(
    judge: Judge,
    result: Mapping[Any, Any],
    history: Sequence[Op],
    place: Placement | None,
    *,
    finished: bool,
) -> list[Finding]:
    """What a checker's result shows, with the faults at the time; nothing if the checker failed."""
    if "error" in result:
        return []
    found = judge.findings(result, history, place, finished=finished)
    return with_circumstances(found, history)


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
    options = {**recorded, "strict": strict, "consistency_models": models}
    if strict and name == PLACED:
        options |= _placement(path, recorded, node_count, concurrency)
    judge = workloads.judge(name)
    result: Mapping[Any, Any] = judge.check(history, options)
    has_results = any(path.with_name(each).exists() for each in RESULTS)
    known = unfinished(path.parent) or ("Its last line is torn." if is_torn else None)
    early = None if has_results else judge.stops_early(history)
    if known and history and not has_results and not early and result["valid?"] is True:
        known = None  # all was read before the bench was stopped
    why = known or (None if as_whole else early)
    if why:
        result = judge.so_far(result, history)
    place = Placement.of(options, history)
    return Judgement(
        history, result, told(judge, result, history, place, finished=not why), why, place
    )


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


# ---------------------------------------------------------------- kept in the run's folder


@dataclass(frozen=True)
class Shown:
    """A finding as pages show it. An operation of the witness has its value in words and, `raw`, as JSON."""

    type: str
    invalidating: bool
    count: int
    sentence: str
    circumstances: str = ""
    witness: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Findings:
    """The anomalies of a run, those first that make it invalid; `note` says what is missing."""

    found: list[Shown] = field(default_factory=list)
    note: str = ""


def shown(findings: Sequence[Finding], place: Placement | None = None) -> list[Shown]:
    """The findings as pages show them."""
    return [
        Shown(
            each.type,
            each.invalidating,
            each.count,
            each.sentence,
            each.circumstances,
            [_operation(op, place) for op in sorted(each.witness, key=lambda op: op.index)],
        )
        for each in sorted(findings, key=lambda each: not each.invalidating)
    ]


def _operation(op: Op, place: Placement | None) -> dict[str, Any]:
    return {
        "index": op.index,
        "time_s": op.time / 1e9,
        "process": op.process,
        "node": place.node(op.process) if place and isinstance(op.process, int) else "",
        "operation": f"{op.type} {op.f}",
        "value": readable(op.value),
        # As JSON has it, for finding the messages of the operation.
        "raw": orjson.loads(orjson.dumps(op.value, default=str, option=orjson.OPT_NON_STR_KEYS)),
    }


def keep(run: Folder, findings: Findings) -> None:
    """Write them into the run's folder, where that can be done."""
    content = {"format": FORMAT, "fingerprint": run.files.fingerprint(), **asdict(findings)}
    with suppress(OSError):
        write_whole(run.path / FINDINGS, [orjson.dumps(content).decode()])


def findings_of(run: Folder, told: Told) -> Findings:
    """Return the findings that the run keeps; else judge its history, if its results show anomalies."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = orjson.loads((run.path / FINDINGS).read_bytes())
        if (kept["format"], kept["fingerprint"]) == (FORMAT, run.files.fingerprint()):
            return Findings([Shown(**each) for each in kept["found"]], kept["note"])
    workload = _wrong(told)
    found = _judged_again(run, workload, told) if workload else Findings()
    if run.results:
        keep(run, found)
    return found


def _wrong(told: Told) -> str | None:
    """The workload whose judge is to be asked; None where nothing is wrong, or nobody can tell."""
    named = told.settings.workload
    if told.results.error_types:
        return named if named in workloads.NAMES else NAMING_TYPES
    is_wrong = told.results.workload.get("valid?", True) is not True
    return named if is_wrong and named in workloads.NAMES else None


def _judged_again(run: Folder, workload: str, told: Told) -> Findings:
    if problem := too_large(run):
        return Findings(note=f"{problem} So the anomalies are counted here, but not told.")
    try:
        judgement = judged(run.path, workload=workload)
    except HistoryError as error:
        why = str(error).rpartition(": ")[2]
        return Findings(note=f"{error.path.name} cannot be read whole ({why}).")
    here = {each.type for each in judgement.findings}
    recorded = set(told.results.error_types or ())
    note = ""
    if recorded and here != recorded:
        names = [", ".join(sorted(types)) or "nothing" for types in (recorded, here)]
        note = f"The run's results name {names[0]}; checking its history again finds {names[1]}."
    return Findings(shown(judgement.findings, judgement.place), note)


def too_large(run: Folder) -> str:
    """Why the history cannot be judged or drawn for a page; empty if it can."""
    file = run.history
    if file is None:
        return "There is no history."
    limit = LIMIT_BYTES // 8 if file.suffix == ".gz" else LIMIT_BYTES
    if file.stat().st_size <= limit:
        return ""
    told = f"{file.name} is larger than the {limit // MIB} MiB that are read for a page."
    return f"{told} `./maelstrom check {shlex.quote(str(run.path))}` judges it."
