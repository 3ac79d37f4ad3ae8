"""What all plots are made of: a picture of one width with panels, one logarithmic axis, one legend.

A picture is drawn once, for any surface: `Picture.png` for files and notebooks, `Picture.svg` for pages,
where text and axes take the page's own colour, `Picture.svg_document` for a file by itself.
No pyplot: no display, and no state that is left behind. The settings below hold for the whole process.
"""

import io
import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Literal, Protocol, runtime_checkable

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from PIL import Image

from runs.operations import Row
from runs.plots import style

Look = dict[str, Any]  # what matplotlib is asked for: color, marker and so on

WIDTH_INCHES = 6.4  # on a telephone, where this becomes 360 points, letters are still 8 points high
SHORTEST_MS = 1e-3  # a logarithmic axis has no zero
_TITLE_INCHES, _BELOW_INCHES = 0.35, 0.75
_LEGEND_COLUMNS = 5
_RARE_TOO = Image.Quantize.MAXCOVERAGE  # keeps the colours of what is small, as of a legend
mpl.rcParams.update(
    {
        "figure.dpi": 150,
        "svg.hashsalt": "plots",  # the same figures give the same file
        "svg.fonttype": "none",  # text can be searched, and needs no font in the file
        "font.family": "sans-serif",
        "font.size": 10.5,
        "text.color": style.INK,
        "axes.labelcolor": style.INK,
        "axes.edgecolor": style.INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.titlelocation": "left",
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "figure.titlesize": 11,
        "figure.titleweight": "bold",
        "grid.color": style.INK,
        "grid.alpha": 0.12,
        "grid.linewidth": 0.6,
        "xtick.color": style.INK,
        "ytick.color": style.INK,
        "xtick.labelsize": 10,
        "ytick.labelsize": 10,
        "legend.fontsize": 10,
        "legend.frameon": False,
        "legend.columnspacing": 1.4,
        "legend.handlelength": 1.4,
    }
)


@runtime_checkable
class Frame(Protocol):
    """A pandas frame, as far as plots use it."""

    def to_dict(self, orient: Literal["records"], /) -> list[dict[str, Any]]: ...


Table = Iterable[Row] | Frame


def records(table: Table) -> list[Row]:
    """The rows of a frame, or rows as they are; what is not a number becomes None."""
    rows = table.to_dict("records") if isinstance(table, Frame) else table
    return [
        {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in row.items()}
        for row in rows
    ]


class Picture(Figure):
    """A figure that can be written to every surface, without a drawing backend."""

    def png(self) -> bytes:
        """Write it as PNG on white. The same figures give the same bytes: no version, no date."""
        canvas = FigureCanvasAgg(self)
        canvas.draw()
        return with_palette(Image.fromarray(np.asarray(canvas.buffer_rgba())))

    def svg(self, name: str = "") -> str:
        """Write it as an element of a page in its own colour (`currentColor`); a narrow page moves it sideways.

        `name` is for who cannot see it; by default the title.
        """
        element = self.svg_document(transparent=True).partition("<svg")[2]
        element = re.sub(r"<metadata>.*?</metadata>", "", element, count=1, flags=re.DOTALL)
        shown = f' role="img" aria-label="{escape(name or self.get_suptitle())}" class="plot"'
        element = re.sub(r' width="[^"]*" height="[^"]*"', shown, element, count=1)
        return f"<figure><svg{element.replace(style.INK, 'currentColor')}</figure>"

    def svg_document(self, *, transparent: bool = False) -> str:
        """Write it as an SVG file by itself, on white."""
        out = io.StringIO()
        self.savefig(out, format="svg", transparent=transparent, metadata={"Date": None})
        return out.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()


def with_palette(image: Image.Image) -> bytes:
    """A picture in 256 colours of its own as PNG: a third of the size, and no difference to the eye."""
    out = io.BytesIO()
    small = image.convert("RGB").quantize(256, _RARE_TOO, dither=Image.Dither.NONE)
    small.save(out, format="png", optimize=True)
    return out.getvalue()


def panels_of(
    title: str,
    count: int = 1,
    columns: int = 1,
    inches: float | Sequence[float] = 2.0,
    **shared: Any,
) -> tuple[Picture, list[Axes]]:
    """An empty picture with so many panels, row by row; those that are left over show nothing.

    Args:
        title: above all of it.
        count: of panels.
        columns: how many stand side by side.
        inches: the height of each row, or of all.
        shared: `sharex` and `sharey` of matplotlib.
    """
    rows = -(-count // columns)
    heights = [inches] * rows if isinstance(inches, float) else [*inches]
    height = sum(heights) + _BELOW_INCHES + (_TITLE_INCHES if title else 0)
    picture = Picture(figsize=(WIDTH_INCHES, height), layout="constrained")
    if title:
        picture.suptitle(title, x=0.01, ha="left")
    grid = picture.subplots(rows, columns, squeeze=False, height_ratios=heights, **shared)
    every: list[Axes] = list(grid.flat)
    for axes in every:
        for spine in axes.spines.values():
            spine.set_in_layout(False)
    for axes in every[count:]:
        axes.set_axis_off()
    return picture, every[:count]


def nothing(title: str, reason: str) -> Picture:
    """A picture that says why there is nothing to see."""
    picture, (axes,) = panels_of(title, inches=0.6)
    axes.set_axis_off()
    axes.text(0, 0.5, reason, alpha=0.75, va="center", transform=axes.transAxes)
    return picture


class _Decades(LogLocator):
    """Ticks at 1, 2, 5, 10 ... of a logarithmic axis; at 1, 10, 100 ... of one over many decades."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        self.set_params(subs=(1.0,) if vmax > 300 * vmin else (1.0, 2.0, 5.0))
        return super().tick_values(vmin, vmax)


def logarithmic(axes: Axes, which: Literal["x", "y"] = "y", suffix: str = "") -> None:
    """A logarithmic axis with few and plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(_Decades())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{suffix}"))
    axis.set_minor_locator(NullLocator())


def legend(picture: Picture, *, beside: bool = False) -> None:
    """One legend of what is labelled in any panel, below them; `beside`: on the right, the last on top."""
    found = [axes.get_legend_handles_labels() for axes in picture.axes]
    keys = {label: key for keys, labels in found for key, label in zip(keys, labels, strict=True)}
    place: Look = {"loc": "outside right upper", "reverse": True}
    if not beside:
        place = {"loc": "outside lower left", "ncols": min(len(keys), _LEGEND_COLUMNS)}
    if keys:
        for key in picture.legend(keys.values(), keys, **place).legend_handles:
            if isinstance(key, Line2D):
                key.set(markersize=5, alpha=1)


def write_above(axes: Axes, text: str, at: tuple[float, float], points: float) -> None:
    """A number so many points above a place of a panel."""
    axes.annotate(text, at, (0, points), textcoords="offset points", ha="center")
