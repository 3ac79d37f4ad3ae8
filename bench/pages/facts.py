"""A store as the pages see it: what is known of each run, read or drawn when asked for.

`Facts` are what a run's small files say of it: its options, its verdict, its start.
"""

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from bench.verdict import kept, wording
from bench.verdict.kept import Findings
from runs.facts import TRUE, UNKNOWN, Anomaly, Results, Settings, Told, mapping, spaced
from runs.faults import FAULTS, MUTE
from runs.figures import Figures, of_run
from runs.files import NODE_LOGS
from runs.history import HistoryError, read_history
from runs.reading import MIB
from runs.store import Folder, Store, time_named
from runs.sweeps import cell_of

# A verdict, or why there is none.
VERDICTS = {
    "valid": "Valid: the checker found nothing wrong.",
    "invalid": "Invalid: the run shows what it must not.",
    "unknown": "Unknown: nothing is certainly wrong, but the run was not finished, or not all was checked.",
    "crashed": "Crashed: the run could not be finished.",
    "running": "Running: there are no results yet. What is there is shown.",
    "incomplete": "Incomplete: the run ended without results. What is there is shown.",
}
VALUE_WIDTH = 200
FRESH_S = 60  # a run without results whose files changed so lately is thought to go on


@dataclass(frozen=True)
class Facts:
    """A row of the list of runs, and the head of a run's page. None stands for unknown."""

    name: str
    sweep: str | None
    verdict: str  # a key of VERDICTS
    told: Told
    started: str | None  # as `2026-11-21 10:07:17`
    node_count: int | None = None
    error: str | None = None  # what the bench could not finish, or what could not be read
    anomalies: tuple[Anomaly, ...] = ()  # without their instances, which may be many
    checks: tuple["Check", ...] = ()  # checks other than the workload's that did not pass

    @property
    def settings(self) -> Settings:
        return self.told.settings

    @property
    def title(self) -> str:
        """What a list calls it: when it started, or its folder's name if that is no time."""
        last = self.name.rpartition("/")[2]
        return str(self.started) if time_named(last) or not last else last

    def faults(self, seen: Iterable[str] = ()) -> str:
        """The kinds of faults in words: those that were asked for, or else all that were `seen`.

        Nobody asks for a mute node: it is named whenever it was seen.
        """
        asked = self.settings.faults or ()
        kinds = [*asked, *(kind for kind in seen if not asked or kind == MUTE)]
        return "all" if set(kinds) >= set(FAULTS) else ", ".join(kinds) or "none"

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
            *(
                (name, None if v is None else f"{spaced(v, 'g')}{unit}")
                for name, (v, unit) in numbers.items()
            ),
            ("faults", self.faults() if asked.faults else None),
            ("store", self.told.options.get("store_server")),
            ("engine", asked.engine),
            ("seed", self.told.options.get("seed")),
            ("started", self.started),
            ("sweep", self.sweep),
        ]
        return [(name, str(value)) for name, value in pairs if value is not None]


@dataclass(frozen=True)
class Check:
    """A check that did not pass, and what it says. `failed`: it did not leave open whether it would."""

    name: str
    sentence: str
    failed: bool = True


def read_facts(run: Folder, now_s: float) -> Facts:
    """The facts of a run, whatever state its files are in.

    Args:
        run: the run.
        now_s: Unix time, to tell a run that goes on from one that was cut off.
    """
    told = Told.of(run.path, cell_of(run.path) if run.sweep and not run.files.options else None)
    results, nodes = told.results, told.settings.nodes
    logs = len(list((run.path / NODE_LOGS).glob("*.log")))
    anomalies = [replace(each, instances=[]) for each in results.anomalies()]
    return Facts(
        name=run.name,
        sweep=run.sweep,
        verdict=_verdict(results, run, now_s),
        told=told,
        # The times of files are those of a copy.
        started=(told.settings.started or "")[:19].replace("T", " ") or time_named(run.path.name),
        node_count=logs or None if nodes is None else len(nodes),
        error=told.problem or results.error,
        anomalies=tuple(sorted(anomalies, key=lambda each: not each.invalidating)),
        checks=tuple(failed_checks(results.content, told=bool(results.error_types))),
    )


def _verdict(results: Results, run: Folder, now_s: float) -> str:
    if results.valid != UNKNOWN:
        return "valid" if results.valid == TRUE else "invalid"
    if run.files.results:
        return "crashed" if results.crashed else "unknown"
    return "running" if now_s - run.changed_s() < FRESH_S else "incomplete"


def failed_checks(results: Mapping[Any, Any], *, told: bool) -> list[Check]:
    """Those that say why a run is not valid; `told`: the workload's anomalies stand elsewhere on the page."""
    failed = {
        str(name): result
        for name, result in results.items()
        if mapping(result).get("valid?", True) is not True and not (name == "workload" and told)
    }
    return [
        Check(name, " ".join(wording.complaints(result, VALUE_WIDTH)), result["valid?"] is False)
        for name, result in failed.items()
    ]


# ---------------------------------------------------------------- the runs of a store


LIMIT_BYTES = 256 * MIB  # five seconds of reading
_REMEMBERED = 2000
T = TypeVar("T")


class Shelf:
    """Runs of a store. Figures and findings stand in their folders; memory has the rest until files change."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[str, object]] = OrderedDict()
        self._working = threading.RLock()  # one page computes at a time; others find its results

    def facts(self, run: Folder) -> Facts:
        """What its small files say; of a run that goes on, as they are now."""
        known = self._once(run, "facts", lambda: read_facts(run, self._clock()))
        return read_facts(run, self._clock()) if known.verdict == "running" else known

    def figures(self, run: Folder) -> Figures:
        """Those that the run keeps, or else measured here."""
        return self._once(run, "figures", lambda: of_run(run, LIMIT_BYTES))

    def findings(self, run: Folder) -> Findings:
        """Those that the run keeps, or else judged here."""
        return self._once(run, "findings", lambda: kept.findings_of(run, self.facts(run).told))

    def lamport(self, run: Folder) -> str:
        """The diagram of the first anomaly as SVG; empty where there is none."""
        from bench.pages import lamport

        found = self.findings(run).found[:3]
        return self._once(
            run,
            "lamport",
            lambda: next(filter(None, (lamport.draw(run, each) for each in found)), ""),
        )

    def timeline(self, run: Folder, first: int = 0) -> str:
        """A part of the timeline, from operation number `first` on; empty if it cannot be drawn here."""
        from runs.plots.timeline import timeline_html

        found = self.findings(run).found
        anomalies = {each.type: [op["index"] for op in each.witness] for each in found}

        def draw() -> str:
            with contextlib.suppress(HistoryError):
                if run.history and not kept.too_large(run):
                    history = read_history(run.history)
                    concurrency = self.facts(run).settings.concurrency
                    return timeline_html(history, run.name, concurrency, anomalies, first=first)
            return ""

        return self._once(run, f"timeline-{first}", draw)

    def _once(self, run: Folder, what: str, compute: Callable[[], T]) -> T:
        fingerprint = run.files.fingerprint()  # taken before reading: a file may grow meanwhile
        with self._working:
            known = self._known.pop((run.name, what), None)
            if not known or known[0] != fingerprint:
                known = fingerprint, compute()
            self._known[run.name, what] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return known[1]  # type: ignore[return-value]
