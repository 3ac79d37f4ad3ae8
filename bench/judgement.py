"""The judgement of a history: what the checkers say, in sentences; and the files in which a run keeps it.

`judged` reads and judges the history of a run, or of a file alone, for `./maelstrom check` and for pages. A run
that has just ended is judged by `bench.checkers`. The sentences stand in `findings.json` of the run's folder,
with the same fingerprint as its figures:

    {"format", "fingerprint", "found": [...], "note"}

*Circumstances.* An anomaly begins with the earliest operation of its witness. What was in force at any time
between the invocation and the completion of that operation may have to do with it. So may what was injected
from then until the last operation of the witness or, where something is missing, until the end of the run. A
final read that lacks an add shows no more than that one of the adds was lost: such an anomaly began with any of
its `causes`, so all that was in force while they were made is told.
"""

import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

import workloads
from bench.failure import clip
from bench.options import TestOptions
from runs import edn
from runs.facts import Told, mapping, never_succeeded, options_of, unfinished
from runs.faults import Injection, injections, listed
from runs.figures import Figures, of_run
from runs.files import (
    FINDINGS,
    HISTORY_EDN,
    JOURNAL,
    OPTIONS,
    RESULTS,
    RESULTS_EDN,
    RESULTS_JSON,
    own,
)
from runs.history import (
    NEMESIS,
    HistoryError,
    Op,
    completions,
    edn_line,
    find_history,
    plain,
    printable,
    read_cut_history,
)
from runs.keyword import keywords
from runs.oddities import in_other_names
from runs.reading import MIB
from runs.store import Folder
from runs.writing import compress_if_large, write_whole
from workloads.interface import LEFT_OUT, UNKNOWN, Finding, Judge, Placement, Result
from workloads.recognition import candidates, operations

_NS = 1e9
_TOLD_MAX = 6  # of many faults, the first


def with_circumstances(findings: Sequence[Finding], history: Sequence[Op]) -> list[Finding]:
    """The findings, each with its `circumstances`; unchanged when the history has no faults."""
    injected = injections(history)
    return [
        replace(each, circumstances=_circumstances(each, history, injected)) if injected else each
        for each in findings
    ]


def _circumstances(finding: Finding, history: Sequence[Op], injected: list[Injection]) -> str:
    if not finding.witness:
        return ""
    first = min(finding.causes or finding.witness, key=lambda op: op.time)
    invoked_ns = completed_ns = first.time
    for halves in completions(history).items():
        invoked, completed = (history[position] for position in halves)
        if first.index in (invoked.index, completed.index):
            invoked_ns, completed_ns = invoked.time, completed.time
    began = f"{first.time / _NS:.3f} s"
    if finding.causes:
        completed_ns = max(op.time for op in finding.causes)
        began = f"between {invoked_ns / _NS:.3f} s and {completed_ns / _NS:.3f} s"
    last_ns = history[-1].time if finding.at_end else max(op.time for op in finding.witness)
    later = [each for each in injected if completed_ns < each.start_ns <= last_ns]
    until = "the end of the run" if finding.at_end else f"{last_ns / _NS:.3f} s"
    then = f" Then, until {until}: {'; '.join(_few(later))}." if later else ""
    return f"It began {began} into the run, {_meanwhile(invoked_ns, completed_ns, injected)}{then}"


def _meanwhile(invoked_ns: int, completed_ns: int, injected: Sequence[Injection]) -> str:
    present = [
        each for each in injected if each.start_ns <= completed_ns and each.end_ns >= invoked_ns
    ]
    if present:
        return f"while {listed(_few(present))}."
    past = [each for each in injected if each.end_ns < invoked_ns]
    if not past:
        return "before any fault."
    latest = max(past, key=lambda each: each.end_ns)
    ago_s = (invoked_ns - latest.end_ns) / _NS
    return f"{ago_s:.3f} s after the latest fault had ended, in which {latest.text}."


def _few(injected: Sequence[Injection]) -> list[str]:
    texts = [each.text for each in injected[:_TOLD_MAX]]
    more = len(injected) - len(texts)
    return [*texts, f"{more} more faults"] if more > 1 else [each.text for each in injected]


# ---------------------------------------------------------------- judging


FORMAT = 2  # raise it when the same history would now be told otherwise
PLACED = "kafka"  # the workload whose strict check asks which node a process talked to
NAMING_TYPES = "kafka"  # the only workload whose results name types of anomalies
LIMIT_BYTES = 24 * MIB  # some 150 000 operations, ten seconds of checking
GLOSSARY = Path(__file__).resolve().parents[1] / "docs" / "bench" / "anomalies.md"
_SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
# A cycle that also takes these orders has no section of its own.
_ORDERS = re.compile(r"-(process|realtime)$")
_CHARACTERS = 400  # of a value
_MESSAGES = 8  # of one key
# Of a check: what is said in sentences, or not at all.
_SAID = ("valid?", "by-f", "reasons", "repeated", "by-node")
_VERSIONED = ("leaderless", "orjson", "click", "rich", "matplotlib")


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


def of_asked(result: Mapping[Any, Any], history: Sequence[Op], limit_s: float | None) -> Result:
    """The result; unknown where clients asked nothing in the main phase: there was nothing to be wrong."""
    asked = (op.time for op in history if op.type == "invoke" and op.process != NEMESIS)
    was_asked = any(limit_s is None or time_ns < limit_s * _NS for time_ns in asked)
    is_open = result["valid?"] is True and not was_asked
    return {**result, **keywords(valid=UNKNOWN, nothing_asked=True)} if is_open else dict(result)


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
    result = of_asked(result, history, recorded.get("time_limit_s"))
    place = Placement.of(options, history)
    findings = told(judge, result, history, place, finished=not why)
    return Judgement(history, keywords(workload=result), judge, findings, place, why)


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


# ---------------------------------------------------------------- checks, values and names in words


def complaints(check: Mapping[Any, Any], width: int) -> Iterator[str]:
    """What a check says that did not pass, in sentences; values are cut to so many characters."""
    reasons = mapping(check.get("reasons"))
    said = [
        f"{f} never succeeded{': ' if f in reasons else '.'}{reasons.get(f, '')}"
        for f in never_succeeded(check)
    ]
    if "ok-fraction" in check:
        said.append(f"{check['ok-fraction']:.1%} of the operations succeeded, less than asked for.")
    said += [*repeated(check), *in_other_names(mapping(check.get("by-node")))]
    yield from said
    numbers = {name: value for name, value in check.items() if name not in _SAID}
    if numbers and not said:
        yield "; ".join(f"{name}: {clip(edn.dumps(each), width)}" for name, each in numbers.items())


def repeated(answers: Mapping[Any, Any]) -> Iterator[str]:
    """How often each node answered again, in a sentence."""
    for node, count in sorted(mapping(answers.get("repeated")).items()):
        yield f"{node} sent {count} answers to requests that had been answered before."


def readable(value: Any) -> str:
    """Transactions of the workload `kafka` in words, a line for each key; any other value as EDN.

    `[[:poll {"6" [[16 5] [17 8]]}]]` becomes `key "6": message 5 at offset 16, message 8 at offset 17`.
    A long value is cut.
    """
    if value is None:
        return ""
    if value == []:
        return "[]"
    lines = [_micro_operation(micro) for micro in value] if isinstance(value, list) else [None]
    text = "\n".join(line for line in lines if line) if None not in lines else edn.dumps(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} …"


def left_out(op: Op) -> str:
    """How many of an operation's values a witness leaves out, to stand behind the others."""
    count = op.extra.get(LEFT_OUT, 0)
    return f" ({count} more {'is' if count == 1 else 'are'} not shown)" if count else ""


def _micro_operation(micro: Any) -> str | None:
    """None where it is of another form."""
    match micro:
        case ["send", key, [offset, message]]:
            return f"key {edn.dumps(key)}: {_place(offset, message)}"
        case ["send", key, message]:
            return f"key {edn.dumps(key)}: message {edn.dumps(message)}"
        case ["poll"]:
            return "any key that is assigned"
        case ["poll", dict(by_key)]:
            parts = [_polled(key, pairs) for key, pairs in by_key.items()]
            known = [part for part in parts if part]
            return ("\n".join(known) or "nothing") if len(known) == len(parts) else None
    return None


def _polled(key: Any, pairs: Any) -> str | None:
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        return None
    shown = [_place(*pair) for pair in pairs[:_MESSAGES]]
    more = [f"{len(pairs) - _MESSAGES} more"] if len(pairs) > _MESSAGES else []
    return f"key {edn.dumps(key)}: {', '.join([*shown, *more]) or 'nothing'}"


def _place(offset: Any, message: Any) -> str:
    return f"message {edn.dumps(message)} at offset {edn.dumps(offset)}"


def meaning(name: str) -> str:
    """The Markdown below the heading of an anomaly in docs/bench/anomalies.md; empty for a name without one."""
    sections = _sections()
    return sections.get(name) or sections.get(_ORDERS.sub("", name), "")


@cache
def _sections() -> dict[str, str]:
    text = GLOSSARY.read_text(encoding="utf-8") if GLOSSARY.is_file() else ""
    return {title: " ".join(body.split()) for title, body in _SECTION.findall(text)}


# ---------------------------------------------------------------- kept in the run's folder


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
