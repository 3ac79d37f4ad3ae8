"""A store as the pages see it: what is known of each run, computed when first asked for, and kept."""

import threading
import time
from collections.abc import Callable
from typing import Any

from bench.pages import facts as small_files
from bench.pages import findings
from bench.pages.cache import Cache
from bench.pages.facts import Facts
from runs.figures import Figures, of_run
from runs.reading import MIB
from runs.store import Folder, Store

LIMIT_BYTES = 256 * MIB  # five seconds of reading


class Library:
    """Runs of a store, and everything that pages show of them."""

    def __init__(
        self, store: Store, cache: Cache | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.store = store
        self._cache = cache or Cache(None)
        self._clock = clock
        self._facts: dict[str, tuple[str, Facts]] = {}
        self._working = threading.Lock()  # one page computes at a time; others find its results

    def facts(self, run: Folder) -> Facts:
        fingerprint = run.files.fingerprint()
        known = self._facts.get(run.name)
        if known and known[0] == fingerprint and known[1].verdict != "running":
            return known[1]
        read = small_files.read_facts(run, self._clock())
        self._facts[run.name] = (fingerprint, read)
        return read

    def figures(self, run: Folder) -> Figures:
        """Those that the run keeps, or else measured here."""
        with self._working:
            return of_run(run, LIMIT_BYTES)

    def findings(self, run: Folder) -> findings.Findings:
        value = self._get(run, "findings", lambda: findings.find(run, self.facts(run)).as_json())
        return findings.Findings.of_json(value)

    def lamport(self, run: Folder) -> str:
        """The diagram of the first anomaly as SVG; empty where there is none."""

        def draw() -> str:
            from bench.pages import lamport

            found = self.findings(run).found
            return next(filter(None, (lamport.draw(run, each) for each in found[:3])), "")

        return str(self._get(run, "lamport", draw))

    def timeline(self, run: Folder, first: int = 0) -> str:
        """A part of the timeline, from operation number `first` on; empty if it cannot be drawn here."""
        anomalies = {
            each.type: [op["index"] for op in each.witness] for each in self.findings(run).found
        }

        def draw() -> str:
            from runs.plots.timeline import timeline_html

            history, problem = findings.small_history(run)
            concurrency = self.facts(run).settings.concurrency
            return (
                ""
                if problem
                else timeline_html(history, run.name, concurrency, anomalies, first=first)
            )

        return str(self._get(run, f"timeline-{first}", draw))

    def _get(self, run: Folder, what: str, compute: Callable[[], Any]) -> Any:
        known = self._cache.get(run, what)
        if known is not None:
            return known
        if what == "lamport":  # made of others, which take the lock
            return self._cache.get_or(run, what, compute)
        with self._working:
            return self._cache.get_or(run, what, compute)
