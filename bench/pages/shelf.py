"""A store as the pages see it: what is known of each run, read or drawn when asked for."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from bench import judgement
from bench.judgement import Findings
from bench.pages import facts as small_files
from bench.pages.facts import Facts
from runs.figures import Figures, of_run
from runs.history import HistoryError, read_history
from runs.reading import MIB
from runs.store import Folder, Store

LIMIT_BYTES = 256 * MIB  # five seconds of reading
_REMEMBERED = 1000
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
        known = self._once(run, "facts", lambda: small_files.read_facts(run, self._clock()))
        return small_files.read_facts(run, self._clock()) if known.verdict == "running" else known

    def figures(self, run: Folder) -> Figures:
        """Those that the run keeps, or else measured here."""
        with self._working:
            return of_run(run, LIMIT_BYTES)

    def findings(self, run: Folder) -> Findings:
        """Those that the run keeps, or else judged here."""
        return self._once(run, "findings", lambda: judgement.findings_of(run, self.facts(run).told))

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
            if judgement.too_large(run) or run.history is None:
                return ""
            try:
                history = read_history(run.history)
            except HistoryError:
                return ""
            concurrency = self.facts(run).settings.concurrency
            return timeline_html(history, run.name, concurrency, anomalies, first=first)

        return self._once(run, f"timeline-{first}", draw)

    def _once(self, run: Folder, what: str, compute: Callable[[], T]) -> T:
        fingerprint = run.files.fingerprint()  # taken before reading: a file may grow meanwhile
        with self._working:
            known = self._known.get((run.name, what))
            if known and known[0] == fingerprint:
                return known[1]  # type: ignore[return-value]
            value = compute()
            self._known[run.name, what] = fingerprint, value
            self._known.move_to_end((run.name, what))
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            return value
