"""What all plots are made of: a picture with panels, one logarithmic axis, one legend.

A picture is drawn once, for any surface: `Picture.png` for files and notebooks, `Picture.svg` for pages,
where text and axes take the page's own colour, `Picture.svg_document` for a file by itself.
No pyplot: no display, and no state that is left behind.
"""

import io
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol, runtime_checkable

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from runs.plots import style

Row = Mapping[str, Any]
Look = dict[str, Any]  # what matplotlib is asked for: color, marker and so on
P = ParamSpec("P")

WIDTH_INCHES = 9.2
SHORTEST_MS = 1e-3  # a logarithmic axis has no zero
_DPI = 110
_TITLE_INCHES, _LEGEND_INCHES = 0.35, 0.25  # of a row of entries
_LEGEND_COLUMNS = 6
_NARROW_INCHES, _NARROW_LEGEND_COLUMNS = 4.0, 3
_RARE_TOO = Image.Quantize.MAXCOVERAGE  # keeps the colours of what is small, as of a legend
_LOCK = threading.RLock()  # matplotlib's settings are global
_SETTINGS: Any = {
    "svg.hashsalt": "plots",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.size": 10,
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
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "grid.color": style.INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.6,
    "xtick.color": style.INK,
    "ytick.color": style.INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
}


@runtime_checkable
class Frame(Protocol):
    """A pandas frame, as far as plots use it."""

    def to_dict(self, orient: Literal["records"], /) -> list[dict[str, Any]]: ...


Table = Iterable[Row] | Frame


def records(table: Table) -> list[Row]:
    """The rows of a frame, or rows as they are; what is not a number becomes None."""
    rows = table.to_dict("records") if isinstance(table, Frame) else table
    return [{name: _known(value) for name, value in row.items()} for row in rows]


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


@contextmanager
def _drawing(**settings: object) -> Iterator[None]:
    with _LOCK, mpl.rc_context(_SETTINGS | settings):
        yield


class Picture(Figure):
    """A figure that can be written to every surface, without a drawing backend."""

    def png(self) -> bytes:
        """As PNG on white. The same figures give the same bytes: no version, no date."""
        out = io.BytesIO()
        with _drawing():
            self.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
        return with_palette(out.getvalue())

    def svg(self) -> str:
        """As elements of a page, as wide as its column, in the page's own colour (`currentColor`).

        They are the picture of class `wide`, and of class `narrow` the same for a telephone, where the other's
        text could not be read: the page shows one of them. Text stays text: it can be searched, and needs no
        font in the file.
        """
        with _drawing(**{"svg.fonttype": "none", "svg.hashsalt": "wide"}):
            wide = _inline(self._svg(transparent=True), "wide")
        with _drawing(**{"svg.fonttype": "none", "svg.hashsalt": "narrow"}), self._narrowed():
            return wide + _inline(self._svg(transparent=True), "narrow")

    @contextmanager
    def _narrowed(self) -> Iterator[None]:
        """For a while as wide as a telephone, and higher by the rows that its legend then needs."""
        width, height = self.get_size_inches()
        rows = [-(-len(each.get_texts()) // _NARROW_LEGEND_COLUMNS) - 1 for each in self.legends]
        self.set_size_inches(_NARROW_INCHES, height + sum(rows) * _LEGEND_INCHES)
        for each in self.legends:
            each.set_ncols(_NARROW_LEGEND_COLUMNS)
        yield
        self.set_size_inches(width, height)
        for each in self.legends:
            each.set_ncols(_LEGEND_COLUMNS)

    def svg_document(self) -> str:
        """As a file by itself, on white; letters are drawn, so that it needs no font."""
        with _drawing():
            return self._svg(transparent=False)

    def _svg(self, *, transparent: bool) -> str:
        out = io.StringIO()
        self.savefig(out, format="svg", transparent=transparent, metadata={"Date": None})
        return out.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()


def with_palette(png: bytes) -> bytes:
    """A picture in 256 colours of its own: a third of the size, and no difference to the eye."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB").quantize(256, _RARE_TOO, dither=Image.Dither.NONE)
    small.save(out, format="png", optimize=True)
    return out.getvalue()


def _inline(document: str, look: str) -> str:
    element = document[document.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, count=1, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    shown = rf'\1 role="img" class="{look}"'
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', shown, element, count=1)
    return element.replace(style.INK, "currentColor")


def drawn(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Decorates a function that draws: it has the project's settings, one thread at a time."""

    @wraps(draw)
    def locked(*args: P.args, **kwargs: P.kwargs) -> Picture:
        with _drawing():
            return draw(*args, **kwargs)

    return locked


@dataclass(frozen=True, slots=True)
class Layout:
    """How the panels of a picture stand: their number across, the height of each, the width of all."""

    columns: int = 1
    panel_inches: float = 2.0
    width_inches: float = WIDTH_INCHES
    sharex: bool = False
    sharey: bool = False
    heights_inches: Sequence[float] = field(default_factory=tuple)  # of rows that differ


def panels_of(title: str, count: int, layout: Layout) -> tuple[Picture, list[Axes]]:
    """An empty picture with so many panels, row by row; those that are left over show nothing."""
    rows = -(-max(count, 1) // layout.columns)
    heights = [*layout.heights_inches] or [layout.panel_inches] * rows
    height = sum(heights) + 0.45 + _LEGEND_INCHES + (_TITLE_INCHES if title else 0)
    picture = Picture(figsize=(layout.width_inches, height), layout="constrained")
    if title:
        picture.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    grid = picture.subplots(
        rows,
        layout.columns,
        squeeze=False,
        sharex=layout.sharex,
        sharey=layout.sharey,
        height_ratios=heights,
    )
    every: list[Axes] = list(grid.flat)
    for axes in every[max(count, 1) :]:
        axes.set_axis_off()
    return picture, every[: max(count, 1)]


def nothing(title: str, reason: str) -> Picture:
    """A picture that says why there is nothing to see."""
    picture, (axes,) = panels_of(title, 1, Layout(panel_inches=0.6))
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
    if which == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(_Decades())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{suffix}"))
    axis.set_minor_formatter(NullFormatter())


def legend(picture: Picture, keys: Sequence[Artist], *, beside: bool = False) -> None:
    """One legend for all panels, below them; `beside`: one under the other, on the right."""
    if keys and beside:
        picture.legend(handles=keys, loc="outside right upper")
    elif keys:
        columns = min(len(keys), _LEGEND_COLUMNS)
        picture.legend(handles=keys, loc="outside lower left", ncols=columns)


def write_above(axes: Axes, text: str, at: tuple[float, float], points: float) -> None:
    """A number so many points above a place of a panel."""
    axes.annotate(text, at, (0, points), textcoords="offset points", ha="center", fontsize=8.5)


def dot_key(colour: str, label: str) -> Artist:
    return Line2D([], [], color=colour, marker="o", markersize=5, linewidth=0, label=label)


def line_key(label: str, **look: Any) -> Artist:
    return Line2D([], [], label=label, **look)


def patch_key(colour: str, label: str, alpha: float = 1) -> Artist:
    return Patch(color=colour, alpha=alpha, linewidth=0, label=label)
