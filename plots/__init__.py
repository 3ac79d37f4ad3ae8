"""Pictures of a run: a handful, each for a question one asks after a verdict.

    latency-raw.png        how long did each operation take, and what became of it?
    latency-quantiles.png  did latency change over time?
    rate.png               did throughput change over time, did operations fail?
    timeline.html          who did what, one after another?
    lamport.svg            which messages make up an operation?

Faults are shaded in each. Everything here only reads a history or a journal, and nothing here can
make a run fail.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.history import Op


def draw_all(
    run_dir: Path, history: Sequence[Op], test: Mapping[str, Any]
) -> dict[str, Path | Exception]:
    """Draw every picture of a run into `run_dir`.

    `test` is what test.json holds. Returns, by file name, the file's path or, for a picture that
    could not be drawn, the exception. Never raises.
    """
    return {name: _attempt(run_dir / name, draw, history, test) for name, draw in _PICTURES.items()}


def _attempt(
    path: Path, draw: "Draw", history: Sequence[Op], test: Mapping[str, Any]
) -> Path | Exception:
    try:
        draw(path, history, test)
    except Exception as error:  # a run's verdict must not depend on whether it can be drawn
        return error
    return path


Draw = Callable[[Path, Sequence[Op], Mapping[str, Any]], None]


def _latency_raw(path: Path, history: Sequence[Op], test: Mapping[str, Any]) -> None:
    from plots.plots import draw_latency_raw

    draw_latency_raw(path, history, _name(test))


def _latency_quantiles(path: Path, history: Sequence[Op], test: Mapping[str, Any]) -> None:
    from plots.plots import draw_latency_quantiles

    draw_latency_quantiles(path, history, _name(test))


def _rate(path: Path, history: Sequence[Op], test: Mapping[str, Any]) -> None:
    from plots.plots import draw_rate

    draw_rate(path, history, _name(test))


def _timeline(path: Path, history: Sequence[Op], test: Mapping[str, Any]) -> None:
    from plots.timeline import timeline_html

    path.write_text(timeline_html(history, _name(test), test.get("concurrency")), encoding="utf-8")


def _lamport(
    path: Path,
    history: Sequence[Op],  # noqa: ARG001 - this one reads the journal instead
    test: Mapping[str, Any],
) -> None:
    from plots.lamport import first_messages, lamport_svg, read_journal

    events = first_messages(read_journal(path.parent))
    title = f"{_name(test)}: the first messages after initialisation"
    path.write_text(lamport_svg(events, title), encoding="utf-8")


def _name(test: Mapping[str, Any]) -> str:
    """The workload and when it ran, where test.json says so."""
    return " ".join(str(test[key]) for key in ("workload", "started") if test.get(key)) or "run"


_PICTURES: dict[str, Draw] = {
    "latency-raw.png": _latency_raw,
    "latency-quantiles.png": _latency_quantiles,
    "rate.png": _rate,
    "timeline.html": _timeline,
    "lamport.svg": _lamport,
}
