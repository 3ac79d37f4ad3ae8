"""The files in which a run keeps its judgement.

They are test.json, history.edn, the results, plots and diagrams; and, for pages, `findings.json` with the
anomalies in sentences, which has the same fingerprint as the run's figures:

    {"format", "fingerprint", "found": [...], "note"}
"""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

import workloads
from bench.options import TestOptions
from bench.verdict.judgement import Judgement, judged
from bench.verdict.wording import left_out, readable
from runs import edn
from runs.facts import Told
from runs.figures import Figures, of_run
from runs.files import FINDINGS, HISTORY_EDN, JOURNAL, RESULTS_EDN, RESULTS_JSON
from runs.history import HistoryError, Op, edn_line, plain, printable
from runs.house import MAELSTROM
from runs.reading import MIB
from runs.store import Folder
from runs.writing import compress_if_large, write_whole
from workloads.interface import Finding, Placement

_VERSIONED = ("leaderless", "orjson", "click", "rich", "matplotlib")
FORMAT = 2  # raise it when the same history would now be told otherwise
NAMING_TYPES = "kafka"  # the only workload whose results name types of anomalies
LIMIT_BYTES = 24 * MIB  # some 150 000 operations, ten seconds of checking


def describe_test(options: TestOptions, started: datetime) -> dict[str, Any]:
    """The content of test.json: options with the seed, versions, command line, the load of the machine."""
    versions: dict[str, str | None] = dict.fromkeys(_VERSIONED)
    for name in _VERSIONED:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return options.as_dict() | {
        "engine": "embedded",
        "started": started.isoformat(timespec="milliseconds"),
        "argv": sys.argv[1:],
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), **versions},
    }


def write_results(run_dir: Path, judgement: Judgement) -> None:
    """Write history.edn, results.edn and results.json (`OSError` when the disk is full)."""
    content = printable(judgement.results)
    write_json(run_dir / RESULTS_JSON, content)
    write_whole(run_dir / RESULTS_EDN, [edn.dumps(content, pretty=True), "\n"])
    write_whole(run_dir / HISTORY_EDN, (edn_line(op) + "\n" for op in judgement.history))
    compress_if_large(run_dir / JOURNAL)


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people: indented, anything foreign as text."""
    write_whole(path, [json.dumps(content, indent=2, default=plain), "\n"])


def draw(
    console: Console,
    run_dir: Path,
    history: list[Op],
    test: Mapping[str, Any],
    findings: Sequence[Finding] = (),
) -> None:
    """Draw plots and diagrams; the timeline shows what the findings rest on.

    A failure is reported and changes nothing else. Ctrl-C skips them.
    """
    from runs.plots.run import draw_all

    anomalies = {each.type: [op.index for op in each.witness] for each in findings}
    try:
        drawn = draw_all(run_dir, history, test, anomalies)
    except KeyboardInterrupt:
        console.print("Drawing was interrupted.", style="yellow")
        return
    for name, artefact in drawn.items():
        if isinstance(artefact, Exception):
            console.print(f"{name} could not be drawn: {artefact}", style="yellow")


@dataclass(frozen=True)
class ShownFinding:
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

    found: list[ShownFinding] = field(default_factory=list)
    note: str = ""


def shown(findings: Sequence[Finding], place: Placement | None = None) -> list[ShownFinding]:
    """The findings as pages show them."""
    return [
        ShownFinding(
            each.type,
            each.invalidating,
            each.count,
            each.sentence,
            each.circumstances,
            [
                {
                    "index": op.index,
                    "time_s": op.time / 1e9,
                    "process": op.process,
                    "node": place.node(op.process) if place and isinstance(op.process, int) else "",
                    "operation": f"{op.type} {op.f}",
                    "value": readable(op.value) + left_out(op),
                    # As JSON has it, for finding the messages of the operation.
                    "raw": orjson.loads(
                        orjson.dumps(op.value, default=str, option=orjson.OPT_NON_STR_KEYS)
                    ),
                }
                for op in sorted(each.witness, key=lambda op: op.index)
            ],
        )
        for each in sorted(findings, key=lambda each: not each.invalidating)
    ]


def keep(run: Folder, judgement: Judgement) -> Figures | None:
    """Write figures.json and findings.json, when all other files are final; return the figures.

    Ctrl-C skips them: then whoever looks at the run first measures and judges it.
    """
    figures = None
    with suppress(KeyboardInterrupt):
        figures = of_run(run)
        _keep(run, Findings(shown(judgement.findings, judgement.place)))
    return figures


def _keep(run: Folder, findings: Findings) -> None:
    run.keep(FINDINGS, FORMAT, run.files.fingerprint(), asdict(findings))


def findings_of(run: Folder, told: Told) -> Findings:
    """Return the findings that the run keeps; else judge its history, if its results show anomalies."""
    if kept := kept_findings(run):
        return kept
    workload = _wrong(told)
    found = _judged_again(run, workload, told) if workload else Findings()
    if run.files.results:
        _keep(run, found)
    return found


def kept_findings(run: Folder) -> Findings | None:
    """Return the findings that the run keeps; None without any, or if its files have changed."""
    return run.kept(
        FINDINGS,
        FORMAT,
        lambda found, note: Findings([ShownFinding(**each) for each in found], note),
    )


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
    names = [", ".join(sorted(types)) or "nothing" for types in (recorded, here)]
    note = f"The run's results name {names[0]}; checking its history again finds {names[1]}."
    differs = bool(recorded) and here != recorded
    return Findings(shown(judgement.findings, judgement.place), note if differs else "")


def too_large(run: Folder) -> str:
    """Why the history cannot be judged or drawn for a page; empty if it can."""
    file = run.history
    if file is None:
        return "There is no history."
    limit = LIMIT_BYTES // 8 if file.suffix == ".gz" else LIMIT_BYTES
    if file.stat().st_size <= limit:
        return ""
    told = f"{file.name} is larger than the {limit // MIB} MiB that are read for a page."
    return f"{told} `{MAELSTROM} check {shlex.quote(str(run.path))}` judges it."
