"""The figures of a run: what it cost and how long it took, by one definition for all readers.

*Main* is the time before the run's time limit; where no file says it, before its long pause; without one, all
of it. An operation belongs to main if it was invoked then. *Asked* are `send` and `poll`; in a run without
them, all operations but `crash`, `assign` and `debug-topic-partitions`.

`measure` computes them, `of_run` keeps them in `figures.json` of the run's folder:

    {"format", "fingerprint", "who", "numbers", "rows", "notes"}

Rows: latency (by phase main or all, kind, outcome), latency_over_time, throughput, network, by_type, causes,
foreign, faults, quarantine.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any, NamedTuple

from runs import reading, sweeps
from runs.collection import collection_paused
from runs.facts import NEVER_OK, Results, Told, mapping, number, spaced, words
from runs.faults import MUTE, Injection, injections
from runs.files import FIGURES
from runs.history import NEMESIS, Op
from runs.operations import (
    OPEN,
    SHARES,
    Pause,
    Row,
    Timings,
    latency_over_time,
    latency_quantiles,
    long_pause,
    quantile,
    recoveries,
    throughput,
    window_width,
)
from runs.store import Folder
from runs.traffic import CONFLICT, Event, Traffic, by_type, network, share

LESS, MORE = "less", "more"
ASKED = ("send", "poll")
UNASKED = NEVER_OK | {"assign"}
MAIN, ALL = "main", "all"
BEYOND_THE_REAL_TOOL = {
    "lost-commit",
    "unreplicated",
    "untold-offset",
}  # what only --strict asks for
FORMAT = 1  # raise it when the same files would now give something else
_LATENCY = re.compile(rf"(.+)_({'|'.join((*SHARES, 'max'))})_ms")


class Number(NamedTuple):
    """What tables call a number of `measure`, its unit, its decimals, and whether less or more is better."""

    title: str
    unit: str = ""
    decimals: int = 2
    better: str = LESS

    @property
    def heading(self) -> str:
        """Name it above a column or beside an axis: title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


# Of each asked operation F there are F_p50_ms, F_p90_ms, F_p99_ms, F_max_ms too: of the ok ones of main.
NUMBERS: Mapping[str, Number] = {
    "server_messages_per_op": Number("server messages/op"),  # distinct messages / operations
    "all_messages_per_op": Number("all messages/op"),
    "server_messages_per_ok": Number("server messages/ok"),  # / asked of main that succeeded
    "conflicts_per_op": Number("conflicts/op"),  # messages of lost compare-and-sets
    "store_requests_per_op": Number("store requests/op"),  # as the store counted
    "invoked_ops_per_s": Number("invoked/s", decimals=0, better=MORE),  # the load, in main
    # Asked that were invoked and succeeded in main.
    "throughput_ops_per_s": Number("ops/s", decimals=0, better=MORE),
    "worst_lag_s": Number("worst lag", "s", 3),  # as the checker says, like the next two
    "stable_median_ms": Number("median stable latency", "ms", 0),
    "stable_most_ms": Number("longest stable latency", "ms", 0),
    "ok_fraction": Number(
        "ok, of sends and polls", decimals=6, better=MORE
    ),  # asked: ok / completed
    "ok_fraction_main": Number(
        "ok, of main", decimals=4, better=MORE
    ),  # those that can succeed: ok / invoked
    "ok_fraction_of_all": Number("ok, of all", decimals=4, better=MORE),  # ok / invoked
    "recovery_ms": Number("recovery", "ms", 0),  # the median over the faults
    # How many programs wanted to run when the run began, by the cores of the machine: above 1 they waited.
    "load_per_core": Number("load per core", decimals=1),
    "node_cpu_us_per_op": Number("node CPU", "µs/op", 0),  # of all nodes, by asked
    "operations": Number(
        "operations", decimals=0, better=MORE
    ),  # invocations by clients, crashes too
    "duration_s": Number("duration", "s", 1),  # until the last event
    "main_s": Number("main", "s", 1),
    "longest_key_messages": Number("messages of the longest key", decimals=0, better=MORE),
    "mute_nodes": Number("mute nodes", decimals=0),
    "foreign_messages": Number("messages in another name", decimals=0),
    "valid": Number("valid", decimals=0, better=MORE),  # 1 or 0, by what the real tool asks
    "strict_valid": Number("valid, strict", decimals=0, better=MORE),
}


def number_of(name: str) -> Number:
    """What a number is, those of latencies too."""
    found = _LATENCY.fullmatch(name)
    return Number(f"{found[1]} {found[2]}", "ms", 1) if found else NUMBERS[name]


@dataclass(frozen=True)
class Figures:
    """All figures of a run; small, whatever the run's size.

    `who` has its workload, program, strategy, and faults (what was asked for or else seen, as text). An unknown
    number is None. `notes` say what is missing, and how to get it.
    """

    who: Mapping[str, str | None] = field(default_factory=dict)
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def table(self, name: str) -> Sequence[Row]:
        """The rows of a table; none where they are not known."""
        return self.rows.get(name, ())

    @property
    def operations(self) -> int:
        return int(self.numbers.get("operations") or 0)

    @property
    def duration_ns(self) -> int:
        return round((self.numbers.get("duration_s") or 0.0) * 1e9)

    @property
    def window_ns(self) -> int:
        """The width of the windows in `latency_over_time` and `throughput`."""
        return window_width(self.duration_ns)

    def latency(self, phase: str = MAIN) -> list[Row]:
        """Latencies by kind and outcome, of the main phase or of the whole run."""
        return [row for row in self.table("latency") if row["phase"] == phase]

    def later(self) -> str:
        """Which operations the latencies of the main phase leave out, in a sentence; empty without any."""
        later = Counter[str]()
        for row in (*self.latency(ALL), *self.latency()):
            later[row["f"]] += row["operation_count"] * (1 if row["phase"] == ALL else -1)
        told = ", ".join(f"{spaced(number)} {f}" for f, number in later.most_common() if number)
        return f"{spaced(later.total())} more came after the main phase: {told}." if told else ""

    def asked(self) -> dict[str, Row]:
        """The latencies of each kind that is asked and succeeded in main, the commonest first."""
        rows = [r for r in self.latency() if r["outcome"] == "ok" and r["f"] not in UNASKED]
        return {row["f"]: row for row in sorted(rows, key=lambda row: -row["operation_count"])}

    def pause(self) -> Pause | None:
        """The long time in which no operation was under way, to a window; None without one."""
        width_ns = self.window_ns
        return long_pause(
            (row["window_start_ns"], row["window_start_ns"] + width_ns + row["latency_ns_max"])
            for row in self.table("latency_over_time")
        )


@dataclass
class _Seen:
    """What one pass over a history keeps."""

    timings: Timings = field(default_factory=Timings)
    nemesis: list[Op] = field(default_factory=list)
    ok: int = 0
    sends: Counter[Any] = field(default_factory=Counter)  # by key: those that succeeded
    last: Op | None = None

    def add(self, op: Op) -> None:
        self.last = op
        self.timings.add(op)
        if op.process == NEMESIS:
            self.nemesis.append(op)
        elif op.type == "ok":
            self.ok += 1
            if op.f == "send":
                with suppress(TypeError, LookupError):  # not of the form that a send has
                    self.sends[op.value[0][1]] += 1

    def injected(self) -> list[Injection]:
        """The faults; one that never ended lasts to the last line."""
        end = [self.last] if self.last and self.last.process != NEMESIS else []
        return injections([*self.nemesis, *end])


@collection_paused()
def measure(history: Iterable[Op], events: Iterable[Event], told: Told) -> Figures:
    """Measure a run in one pass over its history and one over its journal.

    Keeps some 20 bytes an operation, and the messages and calls between servers that are under way.

    Args:
        history: operations in their order; it may be cut anywhere.
        events: those of the journal; if there are none, messages are those of `told.results`.
        told: what the small files say.
    """
    seen = _Seen()
    for op in history:
        seen.add(op)
    traffic = Traffic(events)
    timings, injected, count = seen.timings, seen.injected(), len(seen.timings)
    duration_ns = max((each.ended_ns for each in timings), default=0)
    main_ns = _main_ns(timings, duration_ns, told)
    kinds = set(_asked(timings.names()))
    recovered = recoveries((each for each in timings if each.f in kinds), injected, main_ns)
    window_ns = window_width(duration_ns)
    rows = {
        "latency": [
            {"phase": phase, **row}
            for phase, end_ns in ((MAIN, main_ns), (ALL, duration_ns))
            for row in latency_quantiles(each for each in timings if each.invoked_ns <= end_ns)
        ],
        "latency_over_time": latency_over_time(timings, window_ns),
        "throughput": throughput(timings, window_ns),
        "network": network(traffic.counts, count),
        "by_type": by_type(traffic.counts, count),
        "causes": traffic.causes(count),
        "foreign": [
            {
                "node": str(node),
                "messages": number(mapping(found).get("messages")) or 0,
                "names": words(mapping(found).get("names")) or ["others"],
            }
            for node, found in mapping(
                mapping(told.results.content.get("names")).get("by-node")
            ).items()
        ],
        "faults": [
            {**fault.row(), **recovery._asdict()}
            for fault, recovery in zip(injected, recovered, strict=True)
        ],
    }
    numbers = {
        **_of_operations(timings, seen, main_ns, duration_ns),
        **_of_results(told),
        "recovery_ms": _median_ms(rows["faults"]),
        "foreign_messages": float(sum(row["messages"] for row in rows["foreign"])),
        "mute_nodes": float(len({f.effect["node"] for f in injected if f.fault == MUTE})),
        "load_per_core": _load_per_core(told.options),
    }
    numbers |= _of_messages(told.results, rows, numbers)
    node_cpu_s = mapping(told.options.get("node_cpu_s"))
    asked = numbers.pop("asked")
    used_us = sum(node_cpu_s.values()) * 1e6
    numbers["node_cpu_us_per_op"] = share(used_us, asked or 0) if node_cpu_s else None
    settings = told.settings
    kinds_seen = sorted({each.fault for each in injected})
    who = {
        "workload": settings.workload,
        "program": settings.program,
        "strategy": settings.strategy,
        "faults": ", ".join(kinds_seen if settings.faults is None else settings.faults) or "none",
    }
    return Figures(who, numbers, rows)


def _asked(names: Sequence[str]) -> tuple[str, ...]:
    """The kinds of operations that are measured, of those that a run had."""
    others = tuple(f for f in names if f not in UNASKED)
    return ASKED if not others or set(others) & set(ASKED) else others


def _main_ns(timings: Timings, duration_ns: int, told: Told) -> int:
    """When the main phase ended; a run that stopped before its end has no longer one than itself."""
    limit_s = told.settings.time_limit_s
    if limit_s:
        limit_ns = int(limit_s * 1e9)
        return limit_ns if told.finished else min(limit_ns, duration_ns)
    pause = long_pause((each.invoked_ns, each.ended_ns) for each in timings)
    return pause[0] if pause else duration_ns


def _of_operations(
    timings: Timings, seen: _Seen, main_ns: int, duration_ns: int
) -> dict[str, float | None]:
    kinds = _asked(timings.names())
    took: dict[str, list[int]] = {f: [] for f in kinds}
    count: Counter[str] = Counter()
    for f, outcome, invoked_ns, latency_ns in timings:
        in_main, is_ok = invoked_ns <= main_ns, outcome == "ok"
        count["main"] += in_main
        if in_main and f not in NEVER_OK:
            count["may succeed"] += 1
            count["succeeded"] += is_ok
        if f in took:
            count["asked"] += 1
            count["completed"] += outcome != OPEN
            count["ok"] += is_ok
            if in_main and is_ok:
                took[f].append(latency_ns)
                count["done"] += invoked_ns + latency_ns <= main_ns
    main_s = main_ns / 1e9
    return {
        "operations": len(timings),
        "duration_s": duration_ns / 1e9,
        "main_s": main_s,
        "asked": count["asked"],
        "server_messages_per_ok": sum(map(len, took.values())),  # divides below
        "invoked_ops_per_s": share(count["main"], main_s),
        "throughput_ops_per_s": share(count["done"], main_s),
        **{name: value for f in kinds for name, value in _quantiles_ms(f, sorted(took[f]))},
        "ok_fraction": share(count["ok"], count["completed"]),
        "ok_fraction_main": share(count["succeeded"], count["may succeed"]),
        "ok_fraction_of_all": seen.ok / len(timings) if len(timings) else 1.0,
        "longest_key_messages": float(max(seen.sends.values(), default=0)),
    }


def _quantiles_ms(f: str, ordered: Sequence[int]) -> Iterator[tuple[str, float | None]]:
    for name, q in {**SHARES, "max": 1.0}.items():
        value = quantile(ordered, q)
        yield f"{f}_{name}_ms", None if value is None else value / 1e6


def _of_results(told: Told) -> dict[str, float | None]:
    """Numbers that the checkers and the store gave; None where there are no results."""
    results = told.results
    workload, bad = results.workload, results.bad_error_types  # only kafka has types that are bad
    stable = {str(q): ms for q, ms in mapping(workload.get("stable-latencies")).items()}
    is_whole, is_valid = "error" not in results.content, workload.get("valid?") is True
    is_right = is_valid if bad is None else not set(bad) - BEYOND_THE_REAL_TOOL
    known = bool(results.content)
    return {
        "store_requests_per_op": number(
            mapping(results.content.get("store")).get("requests-per-op")
        ),
        "worst_lag_s": number(mapping(workload.get("worst-realtime-lag")).get("lag")),
        "stable_median_ms": number(stable.get("0.5")),
        "stable_most_ms": number(stable.get("1", stable.get("1.0"))),
        "valid": float(is_whole and is_right) if known else None,
        "strict_valid": float(is_whole and is_valid)
        if known and told.options.get("strict")
        else None,
    }


def _load_per_core(options: Mapping[str, Any]) -> float | None:
    load, cores = number(options.get("load")), number(options.get("cores"))
    return load / cores if load is not None and cores else None


def _of_messages(
    results: Results,
    rows: Mapping[str, Sequence[Row]],
    numbers: Mapping[str, Any],
) -> dict[str, float | None]:
    reported = [mapping(results.net.get(scope)) for scope in ("servers", "all")]
    servers, every = (number(each.get("msgs-per-op")) for each in reported)
    sent = number(reported[0].get("msg-count"))
    conflicts = None
    if rows["network"]:
        scopes = {row["scope"]: row for row in rows["network"]}
        by_cause = {row["cause"]: row["messages_per_operation"] for row in rows["causes"]}
        servers, every = (scopes[it]["messages_per_operation"] for it in ("servers", "all"))
        sent = scopes["servers"]["message_count"]
        conflicts = by_cause[CONFLICT] if sent else None
    return {
        "server_messages_per_op": servers,
        "all_messages_per_op": every,
        "server_messages_per_ok": None
        if sent is None
        else share(sent, numbers["server_messages_per_ok"]),
        "conflicts_per_op": conflicts,
    }


def _median_ms(faults: Sequence[Row]) -> float | None:
    """Over the faults that were watched; None without any, or if half of them were not recovered from."""
    never = float("inf")
    took = [
        never if row["recovery_ms"] is None else row["recovery_ms"]
        for row in faults
        if row["watched_ms"] is not None
    ]
    return None if not took or (middle := median(took)) == never else middle


# ---------------------------------------------------------------- kept in the run's folder


def of_run(
    run: Folder, limit_bytes: int | None = None, cell: Mapping[str, Any] | None = None
) -> Figures:
    """Return the figures that the run keeps, or measure and keep them if its files have changed.

    Args:
        run: ours or the real tool's, finished or not; what cannot be read is noted.
        limit_bytes: of unpacked history and journal (`reading.Budget`). Above it, the figures are those that
            the small files tell, with a note. None reads all.
        cell: of the sweep, where its index does not have the run yet.

    A folder that cannot be written, or whose run is not over, keeps nothing.
    """
    fingerprint = run.files.fingerprint()  # taken before reading: a file may grow meanwhile
    known = kept(run)
    if known and not (limit_bytes is None and known.notes):
        return known
    figures, whole = _read(run, reading.Budget(limit_bytes), cell)
    if whole and run.files.results:
        run.keep(FIGURES, FORMAT, fingerprint, asdict(figures))
    return figures


def kept(run: Folder) -> Figures | None:
    """The figures that the run keeps; None without any, or if its files have changed."""
    return run.kept(FIGURES, FORMAT, Figures)


def _read(
    run: Folder, budget: reading.Budget, cell: Mapping[str, Any] | None
) -> tuple[Figures, bool]:
    """Measure the run; whether all of it was read."""
    told = Told.of(run.path, sweeps.cell_of(run.path) if not (cell or run.files.options) else cell)
    bad = reading.Bad()
    history, journal = run.history, run.journal
    lines = reading.history(history, bad, budget) if history else ()
    try:
        budget.check([*([history] if history else ()), *journal])
        figures = measure(lines, reading.journal(journal, bad, budget), told)
    except reading.TooLarge as error:
        return replace(measure((), (), told), rows={}, notes=[str(error)]), False
    none = "There is no history: the run ended, or was copied, before one was written."
    rows = {**figures.rows, "quarantine": bad.rows()}
    return replace(figures, rows=rows, notes=[] if history else [none]), True
