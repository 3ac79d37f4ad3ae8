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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from runs.plots.picture import Picture
from runs.plots.run import Panel, Span, frequent
from runs.plots.timeline import Anomalies, timeline_html
from runs.reading import Bad, Budget, journal
from runs.store import Folder

_NAME_CHARACTERS = 19  # a time to its seconds


class _Plot(NamedTuple):
    """A plot of a run: its title, what draws it, rows of operations in windows of so many ns."""

    title: str
    draw: Callable[[Sequence[Panel], Span, str], Picture]
    rows: Callable[[list[Timed], int], list[Row]]
    rest: bool = True  # a panel for the rarer kinds of operations, too

    def of(self, history: Sequence[Op], name: str) -> bytes:
        """Draw it as PNG: a panel for each frequent kind of operation."""
        timings = Timings(history)
        done = list(completed(timings))
        end_ns = history[-1].time if history else 0
        pause = long_pause((each.invoked_ns, each.ended_ns) for each in timings)
        span = Span(end_ns, window_width(end_ns), pause)
        kinds = frequent(Counter(each.f for each in done))
        others = list(dict.fromkeys(each.f for each in done if each.f not in kinds))
        groups = [[kind] for kind in kinds] + ([others] if self.rest and others else [])
        faults = [each.row() for each in injections(history)]
        panels = []
        for fs in groups or [[]]:  # nothing happened: an empty panel says so
            rows = self.rows([each for each in done if each.f in fs], span.window_ns)
            panels.append(Panel(", ".join(fs), rows, faults))
        return self.draw(panels, span, f"{self.title} · {name}").png()


def _dots(done: list[Timed], _window_ns: int) -> list[Row]:
    return [each._asdict() for each in done]


_PLOTS = {
    "latency-raw.png": _Plot("Latency of each operation", plots_of_runs.latency_raw, _dots),
    "latency-quantiles.png": _Plot(
        "Latency over time", plots_of_runs.latency_over_time, latency_over_time, rest=False
    ),
    "rate.png": _Plot("Rate of completed operations", plots_of_runs.throughput, throughput),
}


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
    known = (str(test.get(key) or "") for key in ("workload", "started"))
    name = " ".join(each[:_NAME_CHARACTERS] for each in known if each) or "run"
    pictures: dict[str, Callable[[], str | bytes]] = {
        **{file: partial(plot.of, history, name) for file, plot in _PLOTS.items()},
        "timeline.html": lambda: timeline_html(history, name, test.get("concurrency"), anomalies),
        "lamport.svg": lambda: _lamport(run_dir, name),
    }
    return {file: _attempt(run_dir / file, draw) for file, draw in pictures.items()}


def _attempt(path: Path, draw: Callable[[], str | bytes]) -> Path | Exception:
    try:
        content = draw()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except Exception as error:  # a run's verdict must not depend on whether it can be drawn
        return error
    return path


def _lamport(folder: Path, name: str) -> str:
    files = Folder(folder, folder.name).journal
    if not files:
        raise FileNotFoundError(f"{folder} holds no journal of messages")
    events = first_messages(journal(files, Bad(), Budget()))
    return lamport_svg(events, f"{name}: the first messages after initialisation")
