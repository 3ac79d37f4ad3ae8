"""What a run's small files say of it: its options, its verdict, its counts. No file is read whole if large."""

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from analysis.formats import edn
from analysis.sources import OPTIONS
from pages.folders import NODE_LOGS, RESULTS, Folder

# A verdict, or why there is none.
VERDICTS = {
    "valid": "Valid: the checker found nothing wrong.",
    "invalid": "Invalid: the run shows what it must not.",
    "unknown": "Unknown: nothing wrong was found, but not everything could be checked.",
    "crashed": "Crashed: the run could not be finished.",
    "running": "Running: there are no results yet. What is there is shown.",
    "incomplete": "Incomplete: the run ended without results. What is there is shown.",
}
FRESH_S = 60  # a run without results whose files changed so lately is thought to go on
OWN_NODES = ("run.sh", "node.py")
DEFAULT_STRATEGY = "leaderless"
_LARGEST = {".json": 32 * 2**20, ".edn": 4 * 2**20}
_TAIL_BYTES = 4096
_INTERRUPTED = (
    "The run was stopped by"  # how the bench tells of Ctrl-C; any other error ended the run
)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)")


@dataclass(frozen=True)
class Facts:
    """A row of the list of runs, and the head of a run's page. None stands for unknown."""

    name: str
    sweep: str | None
    verdict: str  # a key of VERDICTS
    started: str = ""
    workload: str | None = None
    engine: str | None = None
    strategy: str | None = None
    node_count: int | None = None
    concurrency: int | None = None
    rate_hz: float | None = None
    time_limit_s: float | None = None
    latency_ms: float | None = None
    faults: tuple[str, ...] = ()
    servers_per_operation: float | None = None
    operation_count: int | None = None
    error: str | None = None  # what the bench could not finish, or what could not be read
    anomalies: tuple["Count", ...] = ()
    checks: tuple["Check", ...] = ()  # checks other than the workload's that did not pass
    net: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a list calls it: when it started, or its folder's name if that is no time."""
        last = self.name.rpartition("/")[2]
        return self.started if _TIME.match(last) or not last else last

    def named(self) -> list[tuple[str, str]]:
        """What was run, as names and values; what is unknown is left out."""
        numbers = {
            "nodes": (self.node_count, ""),
            "concurrency": (self.concurrency, ""),
            "rate": (self.rate_hz, "/s"),
            "time limit": (self.time_limit_s, " s"),
            "latency": (self.latency_ms, " ms"),
        }
        pairs = [
            ("workload", self.workload),
            ("strategy", self.strategy),
            *((name, None if v is None else f"{v:g}{unit}") for name, (v, unit) in numbers.items()),
            ("faults", ", ".join(self.faults) or None),
            ("engine", self.engine),
            ("seed", self.options.get("seed")),
            ("started", self.started or None),
            ("sweep", self.sweep),
        ]
        return [(name, str(value)) for name, value in pairs if value is not None]


@dataclass(frozen=True)
class Count:
    """How often a type of anomaly was found; None where the results do not say."""

    type: str
    invalidating: bool
    count: int | None


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
    options, _ = _read(run.first([OPTIONS]))
    results, problem = _results(run)
    workload = _map(results.get("workload"))
    stats, net = _map(results.get("stats")), _map(results.get("net"))
    nodes = options.get("nodes")
    logs = len(list((run.path / NODE_LOGS).glob("*.log")))
    return Facts(
        name=run.name,
        sweep=run.sweep,
        verdict=_verdict(results, run, now_s),
        started=_started(options, run),
        workload=_text(options.get("workload")) or _workload(run),
        engine=_text(options.get("engine")) or ("jepsen" if not options else "embedded"),
        strategy=strategy_of(options),
        node_count=len(nodes) if isinstance(nodes, list) else logs or None,
        concurrency=_integer(options.get("concurrency")),
        rate_hz=_number(options.get("rate")),
        time_limit_s=_number(options.get("time_limit_s")),
        latency_ms=_number(options.get("latency_ms")),
        faults=_words(options.get("nemesis")),
        servers_per_operation=_number(_map(net.get("servers")).get("msgs-per-op")),
        operation_count=_integer(stats.get("count")),
        error=_text(results.get("error")) or problem or _text(workload.get("error")),
        anomalies=tuple(_anomalies(workload)),
        checks=tuple(_failed_checks(results)),
        net=net,
        options=options,
    )


def strategy_of(options: dict[str, Any]) -> str | None:
    """The strategy our node was started with; None for other nodes and unknown ones."""
    words = list(map(str, options.get("args") or ()))
    for at, word in enumerate(words):
        if word.startswith("--strategy="):
            return word.partition("=")[2]
        if word == "--strategy":
            return words[at + 1] if at + 1 < len(words) else None
    name = Path(str(options.get("bin") or "")).name
    return DEFAULT_STRATEGY if name in OWN_NODES else _text(options.get("strategy"))


def _results(run: Folder) -> tuple[dict[str, Any], str | None]:
    file = run.first(RESULTS)
    results, problem = _read(file)
    if file and problem and "valid?" not in results:
        # Too large to read, or cut off: the verdict is the last thing in it.
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
        last = re.search(r'valid\?"?:? +:?"?(true|false|unknown)"?\s*\}\s*$', tail)
        if last:
            results["valid?"] = {"true": True, "false": False}.get(last[1], "unknown")
    return results, problem


def _read(file: Path | None) -> tuple[dict[str, Any], str | None]:
    """The map in a file, and what is wrong with the file if anything is."""
    if file is None:
        return {}, None
    try:
        if file.stat().st_size > _LARGEST[file.suffix]:
            return {}, f"{file.name} is too large to be read for a page"
        data = file.read_bytes()
        content = orjson.loads(data) if file.suffix == ".json" else edn.loads(data.decode())
    except (OSError, ValueError) as error:
        return {}, f"{file.name} cannot be read ({error})"
    return (content, None) if isinstance(content, dict) else ({}, f"{file.name} holds no map")


def _verdict(results: dict[str, Any], run: Folder, now_s: float) -> str:
    valid = results.get("valid?")
    if valid in (True, False):
        return "valid" if valid else "invalid"
    if run.first(RESULTS):
        error = results.get("error")
        return "crashed" if isinstance(error, str) and _INTERRUPTED not in error else "unknown"
    return "running" if now_s - run.changed_s() < FRESH_S else "incomplete"


def _started(options: dict[str, Any], run: Folder) -> str:
    """As `2026-11-21 10:07:17`, from the options, the folder's name, or its files."""
    if isinstance(text := options.get("started"), str):
        return text[:19].replace("T", " ")
    if named := _TIME.match(run.path.name):
        return "{}-{}-{} {}:{}:{}".format(*named.groups())
    return datetime.fromtimestamp(run.changed_s(), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _workload(run: Folder) -> str | None:
    """Both tools keep runs in a folder that is named for the workload."""
    return run.path.parent.name if _TIME.match(run.path.name) else None


def _anomalies(workload: dict[str, Any]) -> list[Count]:
    bad = _words(workload.get("bad-error-types"))
    found = []
    for type_ in _words(workload.get("error-types")):
        error = _map(workload.get(type_))
        unseen = error.get("unseen")
        count = sum(unseen.values()) if isinstance(unseen, dict) else error.get("count")
        found.append(Count(type_, type_ in bad, _integer(count)))
    return sorted(found, key=lambda each: (not each.invalidating, each.type))


def _failed_checks(results: dict[str, Any]) -> list[Check]:
    """Those that say why a run is not valid; the workload's own anomalies are told elsewhere."""
    found = []
    for name, result in results.items():
        check = _map(result)
        if check.get("valid?", True) is True or (name == "workload" and check.get("error-types")):
            continue
        numbers = {k: v for k, v in check.items() if k not in ("valid?", "by-f")}
        by_f = _map(check.get("by-f"))
        never = [f for f, each in by_f.items() if _map(each).get("valid?") is not True]
        told = [f"never succeeded: {', '.join(never)}"] if never else []
        told += [f"{key}: {_short(value)}" for key, value in numbers.items()]
        found.append(Check(name, "; ".join(told)))
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 200 else f"{text[:200]} …"


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
