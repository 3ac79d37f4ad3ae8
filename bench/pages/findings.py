"""The anomalies of a run in sentences, each with the operations that show it.

The verdict is the one that the run's results hold. The sentences come from the bench's own checker, run
again on the history; so a store of the real tool gets them too.
"""

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

import workloads
from bench.circumstances import with_circumstances
from bench.pages.facts import Facts
from runs.edn import dumps
from runs.facts import unfinished
from runs.history import HistoryError, Op, read_history
from runs.reading import MIB
from runs.store import Folder
from workloads.interface import Placement

LIMIT_BYTES = 24 * MIB  # some 150 000 operations, ten seconds of checking
_CHARACTERS = 400  # of a value
_MESSAGES = 8  # of one key
NAMING_TYPES = "kafka"  # the only workload whose results name types of anomalies


@dataclass(frozen=True)
class Finding:
    """One type of anomaly: an instance in a sentence, and the operations that show it."""

    type: str
    invalidating: bool
    count: int
    sentence: str
    circumstances: str = ""  # the faults at the time
    witness: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Findings:
    """What the checker says, or in `note` why it was not asked."""

    found: list[Finding] = field(default_factory=list)
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, value: dict[str, Any]) -> "Findings":
        return cls([Finding(**each) for each in value["found"]], value["note"])


def find(run: Folder, facts: Facts) -> Findings:
    """Explain the anomalies that the results name; nothing is read if nothing is wrong."""
    workload = _workload(facts)
    if workload is None:
        return Findings()
    history, problem = small_history(run)
    if problem:
        return Findings(note=f"{problem} So the anomalies are counted here, but not told.")
    options = facts.options
    known = options.get("strict") and options.get("nodes") and options.get("concurrency")
    judge = workloads.judge(workload)
    result = judge.check(history, options if known else {**options, "strict": False})
    place, finished = Placement.of(options, history), not unfinished(run.path)
    told = judge.findings(result, history, place, finished=finished)
    found = [
        Finding(
            each.type,
            each.invalidating,
            each.count,
            each.sentence,
            each.circumstances,
            [_shown(op) for op in sorted(each.witness, key=lambda op: op.index)],
        )
        for each in with_circumstances(told, history)
    ]
    note = _difference(facts, {each.type for each in found})
    return Findings(sorted(found, key=lambda each: not each.invalidating), note)


def _workload(facts: Facts) -> str | None:
    """The workload whose judge is to be asked; None where nothing is wrong, or nobody can tell."""
    named = facts.settings.workload
    if facts.anomalies:
        return named if named in workloads.NAMES else NAMING_TYPES
    is_wrong = any(check.name == "workload" for check in facts.checks)
    return named if is_wrong and named in workloads.NAMES else None


def small_history(run: Folder) -> tuple[list[Op], str]:
    """The history, or none and a sentence that says why."""
    file = run.history
    if file is None:
        return [], "There is no history."
    limit = LIMIT_BYTES // 8 if file.suffix == ".gz" else LIMIT_BYTES
    if file.stat().st_size > limit:
        told = f"{file.name} is larger than the {limit // MIB} MiB that are read for a page."
        return [], f"{told} `./maelstrom check {shlex.quote(str(run.path))}` judges it."
    try:
        return read_history(file), ""
    except HistoryError as error:
        return [], f"{file.name} cannot be read whole ({str(error).rpartition(': ')[2]})."


def _difference(facts: Facts, here: set[str]) -> str:
    recorded = {each.type for each in facts.anomalies}
    if here == recorded or not recorded:  # only kafka's results name types
        return ""
    return f"The run's results name {_names(recorded)}; checking its history again finds {_names(here)}."


def _names(types: Iterable[str]) -> str:
    return ", ".join(sorted(types)) or "nothing"


def _shown(op: Op) -> dict[str, Any]:
    return {
        "index": op.index,
        "time_s": op.time / 1e9,
        "process": op.process,
        "operation": f"{op.type} {op.f}",
        "value": readable(op.value),
        # As JSON has it, for finding the messages of the operation.
        "raw": orjson.loads(orjson.dumps(op.value, default=str, option=orjson.OPT_NON_STR_KEYS)),
    }


def readable(value: Any) -> str:
    """Transactions of the workload `kafka` in words, a line for each key; any other value as EDN.

    `[[:poll {"6" [[16 5] [17 8]]}]]` becomes `key "6": message 5 at offset 16, message 8 at offset 17`.
    A long value is cut.
    """
    if value is None:
        return ""
    lines = [_micro_operation(micro) for micro in value] if isinstance(value, list) else [None]
    text = "\n".join(line for line in lines if line) if None not in lines else dumps(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} …"


def _micro_operation(micro: Any) -> str | None:
    """None where it is of another form."""
    match micro:
        case ["send", key, [offset, message]]:
            return f"key {dumps(key)}: {_place(offset, message)}"
        case ["send", key, message]:
            return f"key {dumps(key)}: message {dumps(message)}"
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
    return f"key {dumps(key)}: {', '.join([*shown, *more]) or 'nothing'}"


def _place(offset: Any, message: Any) -> str:
    return f"message {dumps(message)} at offset {dumps(offset)}"
