"""What a run keeps of its judgement for pages: its anomalies in sentences, in `findings.json`.

The file has the same fingerprint as the run's figures:

    {"format", "fingerprint", "found": [...], "note"}
"""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

import workloads
from bench.verdict.judgement import Judgement, judged
from bench.verdict.wording import left_out, readable
from runs.facts import Told
from runs.figures import Figures, of_run
from runs.files import FINDINGS, own
from runs.history import HistoryError
from runs.reading import MIB
from runs.store import Folder
from runs.writing import write_whole
from workloads.interface import Finding, Placement

FORMAT = 2  # raise it when the same history would now be told otherwise
NAMING_TYPES = "kafka"  # the only workload whose results name types of anomalies
LIMIT_BYTES = 24 * MIB  # some 150 000 operations, ten seconds of checking


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
        keep_findings(run, Findings(shown(judgement.findings, judgement.place)))
    return figures


def keep_findings(run: Folder, findings: Findings) -> None:
    """Write them into the run's folder, where that can be done."""
    content = {"format": FORMAT, "fingerprint": run.files.fingerprint(), **asdict(findings)}
    with suppress(OSError):
        write_whole(run.path / FINDINGS, [orjson.dumps(content).decode()])


def findings_of(run: Folder, told: Told) -> Findings:
    """Return the findings that the run keeps; else judge its history, if its results show anomalies."""
    if kept := kept_findings(run):
        return kept
    workload = _wrong(told)
    found = _judged_again(run, workload, told) if workload else Findings()
    if run.files.results:
        keep_findings(run, found)
    return found


def kept_findings(run: Folder) -> Findings | None:
    """Return the findings that the run keeps; None without any, or if its files have changed."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = orjson.loads(own(run.path, FINDINGS).read_bytes())
        if (kept["format"], kept["fingerprint"]) == (FORMAT, run.files.fingerprint()):
            return Findings([Shown(**each) for each in kept["found"]], kept["note"])
    return None


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
    return f"{told} `./maelstrom check {shlex.quote(str(run.path))}` judges it."
