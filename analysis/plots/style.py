"""The look that all pictures share: the bench's colours, readable sizes, no more ink than needed."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from plots.style import (
    GRID,
    INK,
    LINK_COLOURS,
    MUTED,
    QUANTILE_COLOURS,
    SERIES_COLOURS,
    fault_colour,
)

WIDTH_INCHES = 9.0
COLOURS = (*SERIES_COLOURS, "#999999", "#000000")
QUANTILES = dict(zip(("max", "p99", "p50"), QUANTILE_COLOURS, strict=False))
LINKS = {
    "node-store": LINK_COLOURS["service"],
    "node-node": LINK_COLOURS["node"],
    "client": LINK_COLOURS["client"],
}
_SETTINGS = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
}


class Picture(Figure):
    """A figure that notebooks show as it is, without a drawing backend."""

    def png(self, dpi: int = 120) -> bytes:
        out = io.BytesIO()
        # The same figures give the same bytes: no version, no date.
        with mpl.rc_context(_SETTINGS):
            self.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
        return _with_palette(out)

    def _repr_png_(self) -> bytes:
        return self.png()


def _with_palette(png: io.BytesIO) -> bytes:
    """The picture in 256 colours of its own: a third of the size, and no difference to the eye."""
    out = io.BytesIO()
    with Image.open(png) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            out, format="png", optimize=True
        )
    return out.getvalue()


def picture(
    title: str, height_inches: float, rows: int = 1, columns: int = 1, **sharing: Any
) -> tuple[Picture, list[Axes]]:
    """An empty picture and its panels, row by row."""
    with mpl.rc_context(_SETTINGS):
        figure = Picture(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        panels = figure.subplots(rows, columns, squeeze=False, **sharing)
    return figure, [axes for row in panels for axes in row]


def name(axes: Axes, title: str) -> None:
    """The title of a panel."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")


def nothing(title: str, reason: str) -> Picture:
    """A picture that says why there is nothing to see."""
    figure, (axes,) = picture(title, 1.5)
    axes.set_axis_off()
    axes.text(0, 0.5, reason, color=MUTED, va="center", transform=axes.transAxes)
    return figure


class _Decades(LogLocator):
    """Ticks at 1, 2, 5, 10 ... of a logarithmic axis; at 1, 10, 100 ... of one over many decades."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        self.set_params(subs=(1.0,) if vmax > 500 * vmin else (1.0, 2.0, 5.0))
        return super().tick_values(vmin, vmax)


def log_ms(axes: Axes, name: str = "latency, ms") -> None:
    """A logarithmic axis of milliseconds, with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(_Decades())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(name)


def colours_of(names: Sequence[str], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """A colour for each name, the same for the same names."""
    free = iter(COLOURS * (1 + len(names) // len(COLOURS)))
    return {name: (known or {}).get(name) or next(free) for name in names}


def shade(axes: Axes, faults: Sequence[Mapping[str, Any]], end_s: float) -> list[Patch]:
    """Shade the time in which faults were in force; returns what a legend needs."""
    kinds = dict.fromkeys(fault["kind"] for fault in faults)
    for fault in faults:
        ended = end_s if fault["ended_ns"] is None else fault["ended_ns"] / 1e9
        axes.axvspan(
            fault["started_ns"] / 1e9,
            min(ended, end_s),
            color=fault_colour(fault["kind"]),
            alpha=0.55,
            linewidth=0,
            zorder=0,
        )
    return [Patch(color=fault_colour(kind), alpha=0.55, label=kind) for kind in kinds]


def legend(figure: Picture, handles: Sequence[Any], **options: Any) -> None:
    """One legend for all panels, below them."""
    placed = {"loc": "outside lower center", "ncols": min(len(handles), 6)}
    settings = placed | {"fontsize": 9, "frameon": False}
    if handles:
        figure.legend(handles=handles, **(settings | options))
