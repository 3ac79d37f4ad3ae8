"""Everything that is drawn: one style and one table of colours, one set of plots for every surface.

Pictures of a run, each for a question one asks after a verdict:

    latency-raw.png        how long did each operation take, and what became of it?
    latency-quantiles.png  did latency change over time?
    rate.png               did throughput change over time, did operations fail?
    timeline.html          who did what, one after another?
    lamport.svg            which messages make up an operation?

Faults are shaded in each. Everything here only reads a history or a journal, and nothing here can
make a run fail. The same functions draw for pages (inline SVG) and notebooks: `run`, `groups`, `messages`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runs.history import Op

if TYPE_CHECKING:
    from plots.run import Panel, Span
    from plots.spans import Rows


def draw_all(
    run_dir: Path, history: Sequence[Op], test: Mapping[str, Any]
) -> dict[str, Path | Exception]:
    """Draw every picture of a run into `run_dir`.

    `test` is what test.json holds. Returns, by file name, the file's path or, for a picture that
    could not be drawn, the exception. Never raises.
    """
    run = _Run(run_dir, history, test)
    return {name: _attempt(run_dir / name, draw, run) for name, draw in _PICTURES.items()}


@dataclass(frozen=True)
class _Run:
    folder: Path
    history: Sequence[Op]
    test: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The workload and when it ran, where test.json says so."""
        known = (str(self.test[key]) for key in ("workload", "started") if self.test.get(key))
        return " ".join(known) or "run"

    @cached_property
    def span(self) -> "Span":
        from plots.run import Span
        from plots.spans import window_width

        end_ns = self.history[-1].time if self.history else 0
        return Span(end_ns, window_width(end_ns))

    @cached_property
    def operations(self) -> "Rows":
        from plots.spans import completed_rows

        return completed_rows(self.history)

    def panels(self, rows_of: Callable[["Rows"], "Rows"], *, rest: bool = False) -> list["Panel"]:
        """A panel for each frequent kind of operation; with `rest` one more for all the others."""
        from plots.run import Panel, frequent
        from plots.spans import fault_rows

        kinds = frequent(Counter(row["f"] for row in self.operations))
        others = list(dict.fromkeys(row["f"] for row in self.operations if row["f"] not in kinds))
        groups = [[kind] for kind in kinds] + ([others] if rest and others else [])
        faults = fault_rows(self.history)
        return [
            Panel(", ".join(fs), rows_of([r for r in self.operations if r["f"] in fs]), faults)
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
    from plots.run import latency_raw

    title = f"Latency of each operation · {run.name}"
    return latency_raw(run.panels(list, rest=True), run.span, title).png()


def _latency_quantiles(run: _Run) -> bytes:
    from plots.run import latency_over_time
    from plots.spans import latency_windows

    panels = run.panels(lambda rows: latency_windows(rows, run.span.window_ns))
    return latency_over_time(panels, run.span, f"Latency over time · {run.name}").png()


def _rate(run: _Run) -> bytes:
    from plots.run import throughput
    from plots.spans import throughput_windows

    panels = run.panels(lambda rows: throughput_windows(rows, run.span.window_ns), rest=True)
    return throughput(panels, run.span, f"Rate of completed operations · {run.name}").png()


def _timeline(run: _Run) -> str:
    from plots.timeline import timeline_html

    return timeline_html(run.history, run.name, run.test.get("concurrency"))


def _lamport(run: _Run) -> str:
    from plots.lamport import first_messages, lamport_svg, read_journal

    events = first_messages(read_journal(run.folder))
    return lamport_svg(events, f"{run.name}: the first messages after initialisation")


_PICTURES: dict[str, Callable[[_Run], str | bytes]] = {
    "latency-raw.png": _latency_raw,
    "latency-quantiles.png": _latency_quantiles,
    "rate.png": _rate,
    "timeline.html": _timeline,
    "lamport.svg": _lamport,
}
