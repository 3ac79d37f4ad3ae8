"""The plots of a page, as inline SVG, from the figures of its run; empty where there is nothing to draw."""

from collections.abc import Sequence
from dataclasses import dataclass

from runs.figures import Figures
from runs.operations import Pause, is_long
from runs.plots import messages, run
from runs.plots.picture import SHORTEST_MS, Picture


@dataclass(frozen=True)
class Frame:
    """What several pictures have in common, so that they can be compared by eye."""

    kinds: Sequence[str]
    end_ns: int
    pause: Pause | None = None
    limits_ms: tuple[float, float] | None = None


def frame(runs: Sequence[Figures]) -> Frame:
    """The frame into which the latencies of all these runs fit."""
    kinds = _kinds(runs)
    rows = [row for each in runs for row in each.table("latency_over_time") if row["f"] in kinds]
    lowest = min((row["latency_ns_p50"] for row in rows), default=0) / 1e6
    highest = max((row["latency_ns_max"] for row in rows), default=0) / 1e6
    limits_ms = max(lowest, SHORTEST_MS) / 1.5, max(highest, SHORTEST_MS) * 1.5
    end_ns = max((each.duration_ns for each in runs), default=0)
    return Frame(kinds, end_ns, _common_pause(runs, end_ns), limits_ms)


def _common_pause(runs: Sequence[Figures], end_ns: int) -> Pause | None:
    """The time in which none of these runs had an operation under way, if it is long; None without one."""
    starts, stops = zip(*(each.pause() or (0, 0) for each in runs), strict=True)
    common = max(starts), min(stops)
    return common if is_long(common, end_ns) else None


def _kinds(runs: Sequence[Figures]) -> list[str]:
    counts: dict[str, int] = {}
    for row in (row for each in runs for row in each.table("latency_over_time")):
        counts[row["f"]] = counts.get(row["f"], 0) + row["operation_count"]
    return run.frequent(counts)


def latency_over_time(figures: Figures, within: Frame | None = None) -> str:
    """A panel for each kind of operation; `within`: the frame to draw in, by default one that fits."""
    if not figures.table("latency_over_time"):
        return ""
    chosen = within or Frame(_kinds([figures]), figures.duration_ns, figures.pause())
    of_kind = {
        kind: [row for row in figures.table("latency_over_time") if row["f"] == kind]
        for kind in chosen.kinds
    }
    panels = [run.Panel(kind, rows, figures.table("faults")) for kind, rows in of_kind.items()]
    span = run.Span(chosen.end_ns, figures.window_ns, chosen.pause)
    return run.latency_over_time(panels, span, limits_ms=chosen.limits_ms).svg()


def throughput(figures: Figures) -> str:
    """Operations completed per second, by outcome."""
    panel = run.Panel("", figures.table("throughput"), figures.table("faults"))
    span = run.Span(figures.duration_ns, figures.window_ns, figures.pause())
    return run.throughput([panel], span).svg() if figures.table("throughput") else ""


def server_messages(figures: Figures) -> str:
    """Server messages per operation by type."""
    return svg(messages.server_messages(figures.table("by_type")))


def message_classes(figures: Figures) -> str:
    """Messages per operation by class of link."""
    return svg(messages.message_classes(figures.table("by_type")))


def svg(picture: Picture | None) -> str:
    return picture.svg() if picture else ""
