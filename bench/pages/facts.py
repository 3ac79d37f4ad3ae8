"""What a run's small files say of it: its options, its verdict, its counts. No file is read whole if large."""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runs.facts import (
    TRUE,
    UNKNOWN,
    Anomaly,
    Results,
    Settings,
    integer,
    mapping,
    never_succeeded,
    number,
    read_options,
    text,
)
from runs.faults import FAULTS, MUTE
from runs.files import JEPSEN_LOG, NODE_LOGS
from runs.store import Folder, time_named
from workloads.kafka.checker import by_cause

Map = Mapping[str, Any]

# A verdict, or why there is none.
VERDICTS = {
    "valid": "Valid: the checker found nothing wrong.",
    "invalid": "Invalid: the run shows what it must not.",
    "unknown": "Unknown: nothing is certainly wrong, but the run was not finished, or not all was checked.",
    "crashed": "Crashed: the run could not be finished.",
    "running": "Running: there are no results yet. What is there is shown.",
    "incomplete": "Incomplete: the run ended without results. What is there is shown.",
}
ALL_FAULTS = "all"  # as in `--nemesis all`
FRESH_S = 60  # a run without results whose files changed so lately is thought to go on
_LARGEST = {".json": 32 * 2**20, ".edn": 4 * 2**20}
_TAIL_BYTES = 4096
_INTERRUPTED = "The run was stopped by"  # how the bench reports Ctrl-C; other errors end a run too


@dataclass(frozen=True)
class Facts:
    """A row of the list of runs, and the head of a run's page. None stands for unknown."""

    name: str
    sweep: str | None
    verdict: str  # a key of VERDICTS
    settings: Settings  # with a workload and a start from the folder, where no file says them
    node_count: int | None = None
    servers_per_operation: float | None = None
    store_requests_per_operation: float | None = None  # of a run on a real store
    operation_count: int | None = None
    error: str | None = None  # what the bench could not finish, or what could not be read
    anomalies: tuple[Anomaly, ...] = ()  # without their instances, which may be many
    checks: tuple["Check", ...] = ()  # checks other than the workload's that did not pass
    net: Map = field(default_factory=dict)
    options: Map = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a list calls it: when it started, or its folder's name if that is no time."""
        last = self.name.rpartition("/")[2]
        return str(self.settings.started) if time_named(last) or not last else last

    def faults(self, seen: Iterable[str] = ()) -> str:
        """The kinds of faults in words: those that were asked for, or else all that were `seen`.

        Nobody asks for a mute node: it is named whenever it was seen.
        """
        asked = self.settings.faults or ()
        kinds = [*asked, *(kind for kind in seen if not asked or kind == MUTE)]
        return ALL_FAULTS if set(kinds) >= set(FAULTS) else ", ".join(kinds) or "none"

    def named(self) -> list[tuple[str, str]]:
        """What was run, as names and values; what is unknown is left out."""
        asked = self.settings
        numbers = {
            "nodes": (self.node_count, ""),
            "concurrency": (asked.concurrency, ""),
            "rate": (asked.rate_hz, "/s"),
            "time limit": (asked.time_limit_s, " s"),
            "latency": (asked.latency_ms, " ms"),
        }
        pairs = [
            ("workload", asked.workload),
            ("program", asked.program),
            *((name, None if v is None else f"{v:g}{unit}") for name, (v, unit) in numbers.items()),
            ("faults", self.faults() if asked.faults else None),
            ("store", self.options.get("store_server")),
            ("engine", asked.engine),
            ("seed", self.options.get("seed")),
            ("started", asked.started),
            ("sweep", self.sweep),
        ]
        return [(name, str(value)) for name, value in pairs if value is not None]


@dataclass(frozen=True)
class Check:
    """A check that did not pass, and its numbers."""

    name: str
    numbers: str


def read_facts(run: Folder, now_s: float) -> Facts:
    """The facts of a run, whatever state its files are in.

    Args:
        run: the run.
        now_s: Unix time, to tell a run that goes on from one that was cut off.
    """
    options = _options(run)
    results, problem = _results(run)
    settings, net = Settings.of(options).placed(run.path), results.net
    logs = len(list((run.path / NODE_LOGS).glob("*.log")))
    return Facts(
        name=run.name,
        sweep=run.sweep,
        verdict=_verdict(results, run, now_s),
        settings=replace(settings, started=_started(settings, run)),
        node_count=logs or None if settings.nodes is None else len(settings.nodes),
        servers_per_operation=number(mapping(net.get("servers")).get("msgs-per-op")),
        store_requests_per_operation=number(results.store.get("requests-per-op")),
        operation_count=integer(mapping(results.content.get("stats")).get("count")),
        error=text(results.content.get("error")) or problem or results.error,
        anomalies=_anomalies(results),
        checks=tuple(_failed_checks(results)),
        net=net,
        options=options,
    )


def _options(run: Folder) -> Map:
    file = run.options
    with contextlib.suppress(OSError, ValueError):
        return read_options(_content(file)) if file else {}
    return {}


def _results(run: Folder) -> tuple[Results, str | None]:
    """What the results say, and what is wrong with their file if anything is."""
    file = run.results
    if file is None:
        return Results(), None
    try:
        return Results.read(file.name, _content(file)), None
    except (OSError, ValueError) as error:
        # The verdict is the last thing in results that are too large, or cut off before.
        return Results(_verdict_at_end(file)), f"{file.name} cannot be read ({error})"


def _content(file: Path) -> bytes:
    if file.stat().st_size > _LARGEST[file.suffix]:
        raise ValueError("it is too large to be read for a page")
    return file.read_bytes()


def _verdict_at_end(file: Path) -> Map:
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return {}
    last = re.search(r'valid\?"?:? +:?"?(true|false|unknown)"?\s*\}\s*$', tail)
    return {"valid?": {"true": True, "false": False}.get(last[1], last[1])} if last else {}


def _verdict(results: Results, run: Folder, now_s: float) -> str:
    if results.valid != UNKNOWN:
        return "valid" if results.valid == TRUE else "invalid"
    if run.results:
        error = results.content.get("error")
        return "crashed" if isinstance(error, str) and _INTERRUPTED not in error else "unknown"
    return "running" if now_s - run.changed_s() < FRESH_S else "incomplete"


def _started(settings: Settings, run: Folder) -> str | None:
    """As `2026-11-21 10:07:17`: what the bench noted, the folder's name, or the real tool's log says.

    The times of files are those of a copy, so they say nothing.
    """
    if settings.started:
        return settings.started[:19].replace("T", " ")
    return time_named(run.path.name) or _first_logged(run.path / JEPSEN_LOG)


def _first_logged(log: Path) -> str | None:
    """The time with which the first line of the real tool's log begins."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        line = file.readline(200).decode(errors="replace")
        if found := re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", line):
            return found[0].replace("T", " ")
    return None


def _anomalies(results: Results) -> tuple[Anomaly, ...]:
    found = [replace(each, instances=[]) for each in results.anomalies()]
    return tuple(sorted(found, key=lambda each: (not each.invalidating, by_cause(each.type))))


def _failed_checks(results: Results) -> list[Check]:
    """Those that say why a run is not valid; the workload's own anomalies stand elsewhere on the page."""
    found = []
    for name, result in results.content.items():
        check = mapping(result)
        if check.get("valid?", True) is True or (name == "workload" and check.get("error-types")):
            continue
        numbers = {k: v for k, v in check.items() if k not in ("valid?", "by-f", "reasons")}
        reasons = mapping(check.get("reasons"))
        told = [
            f"{f} never succeeded: {reasons.get(f, 'why is not known')}"
            for f in never_succeeded(check)
        ]
        told.append("; ".join(f"{key}: {_short(value)}" for key, value in numbers.items()))
        found.append(Check(name, " ".join(filter(None, told))))
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else f"{text[:200]} …"
