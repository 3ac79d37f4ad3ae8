"""The pictures in the folder of a run: a handful, each for a question one asks after a verdict.

    latency-raw.png        how long did each operation take, and what became of it?
    latency-quantiles.png  did latency change over time?
    rate.png               did throughput change over time, did operations fail?
    timeline.html          who did what, one after another?
    lamport.svg            which messages make up an operation?

Faults are shaded in each but the last. Everything here only reads a history or a journal, and nothing here
can make a run fail.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.faults import injections
from runs.history import Op
from runs.operations import (
    Row,
    Timed,
    Timings,
    completed,
    latency_over_time,
    long_pause,
    throughput,
    window_width,
)
from runs.plots import run as plots_of_runs
from runs.plots.lamport import first_messages, lamport_svg
from runs.plots.run import Panel, Span, frequent
from runs.plots.timeline import Anomalies, timeline_html
from runs.reading import Bad, Budget, journal
from runs.store import Folder

Rows = list[Row]
_NAME_CHARACTERS = 19  # a time to its seconds


def draw_all(
    run_dir: Path,
    history: Sequence[Op],
    test: Mapping[str, Any],
    anomalies: Anomalies | None = None,
) -> dict[str, Path | Exception]:
    """Draw every picture of a run into `run_dir`.

    `test` is what test.json holds; `anomalies` are the operations that the timeline must show.
    Returns, by file name, the file's path or, for a picture that could not be drawn, the exception.
    Never raises.
    """
    run = _Run(run_dir, history, test, anomalies)
    return {name: _attempt(run_dir / name, draw, run) for name, draw in _PICTURES.items()}


@dataclass(frozen=True)
class _Run:
    folder: Path
    history: Sequence[Op]
    test: Mapping[str, Any]
    anomalies: Anomalies | None = None

    @property
    def name(self) -> str:
        """The workload and when it ran, where test.json says so."""
        known = (str(self.test.get(key) or "") for key in ("workload", "started"))
        return " ".join(each[:_NAME_CHARACTERS] for each in known if each) or "run"

    @property
    def span(self) -> Span:
        end_ns = self.history[-1].time if self.history else 0
        asked = ((each.invoked_ns, each.ended_ns) for each in Timings(self.history))
        return Span(end_ns, window_width(end_ns), long_pause(asked))

    def panels(self, rows_of: Callable[[list[Timed]], Rows], *, rest: bool) -> list[Panel]:
        """A panel for each frequent kind of operation; with `rest` one more for all the others."""
        done = list(completed(Timings(self.history)))
        kinds = frequent(Counter(each.f for each in done))
        others = list(dict.fromkeys(each.f for each in done if each.f not in kinds))
        groups = [[kind] for kind in kinds] + ([others] if rest and others else [])
        faults = [each.row() for each in injections(self.history)]
        return [
            Panel(", ".join(fs), rows_of([each for each in done if each.f in fs]), faults)
            for fs in groups or [[]]  # nothing happened: an empty panel says so
        ]


def _attempt(path: Path, draw: Callable[[_Run], str | bytes], run: _Run) -> Path | Exception:
    try:
        content = draw(run)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except Exception as error:  # a run's verdict must not depend on whether it can be drawn
        return error
    return path


def _latency_raw(run: _Run) -> bytes:
    def rows(done: list[Timed]) -> Rows:
        return [each._asdict() for each in done]

    title = f"Latency of each operation · {run.name}"
    return plots_of_runs.latency_raw(run.panels(rows, rest=True), run.span, title).png()


def _latency_quantiles(run: _Run) -> bytes:
    panels = run.panels(lambda done: latency_over_time(done, run.span.window_ns), rest=False)
    title = f"Latency over time · {run.name}"
    return plots_of_runs.latency_over_time(panels, run.span, title).png()


def _rate(run: _Run) -> bytes:
    panels = run.panels(lambda done: throughput(done, run.span.window_ns), rest=True)
    title = f"Rate of completed operations · {run.name}"
    return plots_of_runs.throughput(panels, run.span, title).png()


def _timeline(run: _Run) -> str:
    return timeline_html(run.history, run.name, run.test.get("concurrency"), run.anomalies)


def _lamport(run: _Run) -> str:
    files = Folder(run.folder, run.folder.name).journal
    if not files:
        raise FileNotFoundError(f"{run.folder} holds no journal of messages")
    events = first_messages(journal(files, Bad(), Budget()))
    return lamport_svg(events, f"{run.name}: the first messages after initialisation")


_PICTURES: dict[str, Callable[[_Run], str | bytes]] = {
    "latency-raw.png": _latency_raw,
    "latency-quantiles.png": _latency_quantiles,
    "rate.png": _rate,
    "timeline.html": _timeline,
    "lamport.svg": _lamport,
}
