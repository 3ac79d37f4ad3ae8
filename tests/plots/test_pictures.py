"""Pictures say what they show, in the same colours on every surface; one of nothing says why.

One table of colours: complete, readable on white and on dark, and the only place that writes any.
"""

import math
import re
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from docs import pictures
from performance import crowd
from performance.scaling import SLOPES
from runs.faults import FAULTS, MUTE
from runs.operations import SHARES
from runs.plots import groups, run, style
from runs.plots.picture import Picture, records
from runs.traffic import LINKS
from specs.stories import STORIES
from tests.programs import ROOT

SECOND = 1_000_000_000
SPAN = run.Span(3 * SECOND, SECOND)
PARTITION = {"kind": "partition", "started_ns": SECOND, "ended_ns": 2 * SECOND}
KILL = {"kind": "kill", "started_ns": 2 * SECOND, "ended_ns": None}


def window(second: int, **values: float | str) -> dict[str, Any]:
    return {"window_start_ns": second * SECOND, **values}


def quantiles(second: int, ms: float) -> dict[str, Any]:
    return window(second, **{f"latency_ns_{name}": ms * 1e6 for name in style.QUANTILES})


def operation(outcome: str, ms: float | None) -> dict[str, Any]:
    took_ns = None if ms is None else int(ms * 1e6)
    return {"f": "send", "outcome": outcome, "invoked_ns": SECOND, "latency_ns": took_ns}


LATENCIES = [quantiles(0, 1), quantiles(1, 100), quantiles(3, 0)]
RATES = [window(0, outcome="ok", rate_hz=10.0), window(2, outcome="fail", rate_hz=3.0)]
OPERATIONS = [operation("ok", 1.0), operation("info", 5.0), operation("open", None)]


def words(picture: Picture) -> set[str]:
    """What is written in a picture."""
    picture.canvas.draw()
    texts: list[Any] = picture.findobj(lambda each: hasattr(each, "get_text"))
    return {text.get_text() for text in texts} - {""}


def over_time(*faults: dict[str, Any]) -> Picture:
    return run.latency_over_time([run.Panel("send", LATENCIES, faults)], SPAN, "Latency")


def raw(*faults: dict[str, Any]) -> Picture:
    return run.latency_raw([run.Panel("send", OPERATIONS, faults)], SPAN)


def rate(*faults: dict[str, Any]) -> Picture:
    return run.throughput([run.Panel("", RATES, faults)], SPAN)


def weathers() -> Picture:
    there = [("cas", "kill"), ("leaderless", "kill"), ("cas", "pause")]
    rows = [{"strategy": s, "weather": w, **operation("ok", 1)} for s, w in there]
    faults = [{"strategy": "cas", "weather": "pause", **KILL, "ended_ns": math.nan}]
    return run.under_faults(pd.DataFrame(rows), pd.DataFrame(faults))


def mean(program: str, standing: str | None, figure: str = "availability") -> dict[str, Any]:
    low, high = (math.nan, math.nan) if standing is None else (1.0, 3.0)
    row = {"figure": figure, "program": program, "mean": 2.0, "mean_low": low, "mean_high": high}
    return {**row, "standing": standing, "enough_runs": standing is not None}


def compared() -> Picture:
    rows = [mean("leaderless", "worse"), mean("cas", "baseline"), mean("other", None)]
    return groups.compare(pd.DataFrame(rows), "cas", "program")


def recovered() -> Picture:
    took = (SECOND // 2, math.nan)
    rows = [
        {"program": "cas", "kind": "kill", "watched_ns": SECOND, "recovery_ns": t} for t in took
    ]
    return groups.recovery_times(pd.DataFrame(rows), "program")


def curves() -> Picture:
    rows = [{"program": "cas", "f": "poll", "slower_share": s, "latency_ns": 1e6} for s in (1, 0.1)]
    return groups.latency_curves(rows, "program")


def filled() -> Picture:
    row = {"program": "prefetch", "key": "7", "offset": 1, "sent_ns": 5, "is_late": True}
    rows = pd.DataFrame([row | {"first_polled_ns": each} for each in (math.nan, 9)])
    return groups.filling(rows, ("leader", "prefetch"), "program")


def grown() -> Picture:
    points = [(1.0, (2.0, 1.0, 3.0)), (10.0, (3.0, 2.0, 4.0))]
    lines: dict[str, groups.Line] = {"p50": points, "p99": points, "none": []}
    return groups.growth("Growth", {"latency": lines}, "nodes", [1, 10])


# A picture, what it says, and what it does not say.
SAYS: list[tuple[Callable[[], Picture], str, str]] = [
    (lambda: over_time(PARTITION), "Latency|send|p50|p90|p99|max|partition|latency, ms", "kill"),
    # What never completed has no dot and no entry in the legend.
    (raw, "ok|info (outcome unknown)", "fail|open (never completed)"),
    (rate, "ok|fail|operations / s|time of completion, s", "open (never completed)"),
    (weathers, "kill|leaderless, kill|leaderless, pause|cas, kill|cas, pause", "fail"),
    (compared, "availability|2|(2)|no difference told|worse|cas|other", "better"),
    (recovered, "kill, cas|not seen in this time", ""),
    (curves, "poll|cas|share that took longer", "send"),
    (filled, "prefetch, key 7|sent behind a reader", "leader"),
    (grown, "Growth|latency|p50|p99|nodes|10", "none"),
    (
        lambda: run.latency_over_time([], SPAN, "Latency"),
        "Latency|No such operation in these runs.",
        "",
    ),
    (lambda: run.under_faults([], []), "No run in this lake has faults.", ""),
    (
        lambda: groups.messages_per_operation([], "link", "program"),
        "No run has a program and messages.",
        "",
    ),
    (lambda: groups.compare([], "cas"), "No run has a strategy and figures.", ""),
    (
        lambda: groups.recovery_times([]),
        "No fault ended long enough before the next one to be watched.",
        "",
    ),
    (lambda: groups.latency_curves([]), "No operation was acknowledged.", ""),
    (lambda: groups.filling([], ("cas",)), "Nobody sent or polled a message.", ""),
]


@pytest.mark.parametrize(("picture", "said", "unsaid"), SAYS)
def test_a_picture_says(picture: Callable[[], Picture], said: str, unsaid: str) -> None:
    written = words(picture())
    assert set(said.split("|")) <= written
    assert not written & ({*unsaid.split("|")} - {""})


@pytest.mark.parametrize("picture", [over_time, raw, rate])
def test_a_fault_has_its_one_colour_in_every_picture(picture: Callable[..., Picture]) -> None:
    svg = picture(*(KILL | {"kind": kind} for kind in style.FAULTS)).svg()
    assert [kind for kind, colour in style.FAULTS.items() if colour not in svg] == []


def on_every_surface(*faults: dict[str, Any]) -> tuple[bytes, str, str]:
    """The same picture: as PNG, in a page, and as a document."""
    png, svg, document = (over_time(*faults) for _ in range(3))
    return png._repr_png_(), svg.svg(), document.svg_document()


def test_surfaces() -> None:
    """The same figures give the same picture. In a page it has the colour of the text, and no ground."""
    png, svg, document = on_every_surface(PARTITION)
    assert (png, svg, document) == on_every_surface(PARTITION)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert svg.startswith("<figure><svg")
    assert [word in svg for word in ("currentColor", style.INK, "<metadata")] == [
        True,
        False,
        False,
    ]
    assert [word in document for word in ("currentColor", style.INK)] == [False, True]
    assert ">latency, ms<" in svg  # text stays text
    assert 'role="img" aria-label="Latency" class="plot" viewBox=' in svg


def test_a_pause_is_a_narrow_band_that_says_how_long_it_was() -> None:
    rows = [quantiles(second, 1) for second in (0, 4, 14)]
    span = run.Span(15 * SECOND, SECOND, (5 * SECOND, 13 * SECOND))
    picture = run.latency_over_time([run.Panel("send", rows, [KILL, PARTITION])], span)
    assert "no operation for 8 s" in words(picture)
    for axes in picture.axes:  # faults and latencies
        before, band, behind = np.diff(
            [axes.transData.transform((s, 1))[0] for s in (0, 5, 13, 15)]
        )
        assert band < 0.06 * (before + band + behind)
        assert before / behind == pytest.approx(5 / 2)  # one scale
    ticks = picture.axes[-1].get_xticks()
    assert {0.0, 2.0, 4.0} <= {*ticks}
    assert not [tick for tick in ticks if 5 < tick < 13]


def test_several_kinds_of_faults_get_lanes_and_below_them_the_ground_has_one_grey() -> None:
    assert len(over_time(PARTITION).axes) == 1
    fence = {"kind": "fence", "started_ns": SECOND, "ended_ns": SECOND}
    overlapping = KILL | {"started_ns": SECOND // 2}
    lanes, axes = over_time(overlapping, PARTITION, fence, KILL | {"kind": "pause"}).axes
    assert [label.get_text() for label in lanes.get_yticklabels()] == [
        "partition",
        "kill",
        "pause",
        "fence",
    ]
    assert len(lanes.patches) == 4
    assert all(bar.get_linewidth() > 1 for bar in lanes.patches)  # one that took no time is seen
    assert {patch.get_facecolor()[:3] for patch in axes.patches} == {to_rgb(style.NEUTRAL)}
    assert len(axes.patches) == 1  # no time is shaded twice


def test_windows_without_operations_are_gaps_and_not_bridged() -> None:
    (axes,) = over_time().axes
    times_s, values = map(np.asarray, axes.lines[0].get_data())
    assert [*times_s] == [0, 1, 2, 3]
    assert [math.isnan(value) for value in values] == [False, False, True, False]
    assert values[-1] > 0  # a logarithmic axis has no zero
    assert run.Span(0).end_s > 0  # an axis has some length
    assert run.frequent({"send": 50, "poll": 50, "assign": 4}) == ["poll", "send"]


TYPES = [f"type-{number}" for number in range(9)]


@pytest.mark.parametrize(
    ("stack", "parts", "shown"),
    [
        ("link", ["client", "node-store"], ["client", "node-store"]),
        ("cause", ["conflict", "commit"], ["conflict", "commit"]),
        ("type", TYPES, ["all others", *TYPES[2:]]),
    ],
)
def test_messages_are_stacked_by(stack: str, parts: list[str], shown: list[str]) -> None:
    rows = [
        {"strategy": "cas", stack: part, "messages_per_operation": value}
        for value, part in enumerate(parts, start=1)
    ]
    picture = groups.messages_per_operation(rows, stack)
    assert {"cas", f"{sum(range(len(parts) + 1)):.2f}"} <= words(picture)
    assert [text.get_text() for text in picture.legends[0].get_texts()] == shown


def test_bars_of_messages_have_the_colours_of_their_links() -> None:
    by_type = [
        {"link": "client", "type": "send", "message_count": 9, "messages_per_operation": 2.0},
        {"link": "node-store", "type": "cas", "message_count": 3, "messages_per_operation": 0.5},
        {"link": "node-store", "type": "read", "message_count": 4, "messages_per_operation": None},
    ]
    types = groups.server_messages(by_type)
    assert types
    assert [label.get_text() for label in types.axes[0].get_yticklabels()] == ["read", "cas"]
    assert "0.500" in words(types)
    assert style.LINKS["node-store"] in types.svg()
    assert groups.server_messages(by_type[:1]) is None


def test_no_axis_goes_beyond_what_is_possible() -> None:
    rows = [
        mean("cas", "baseline", figure) | {"mean": m, "mean_low": m, "mean_high": m}
        for figure, m in (("ok, of main", 1.0), ("conflicts per operation", 0.0))
    ]
    share, count = groups.compare(rows, "cas", "program").axes
    assert share.get_xlim()[1] == 1
    assert count.get_xlim()[0] == 0
    sent = {"strategy": "cas", "key": "7", "first_polled_ns": None, "is_late": False}
    messages_ = [sent | {"offset": offset, "sent_ns": offset} for offset in (0, 1)]
    (axes,) = groups.filling(messages_, ["cas"]).axes
    low, high = axes.get_ylim()
    assert [tick for tick in axes.get_yticks() if low <= tick <= high] == [0, 1]


def test_groups_and_their_looks() -> None:
    """The baseline is on top; what was not recovered from is hollow, what came behind a reader red."""
    labels = [label.get_text() for label in compared().axes[0].get_yticklabels()]
    assert labels == ["cas", "leaderless", "other"]
    assert [line.get_fillstyle() for line in recovered().axes[0].lines] == ["full", "none"]
    assert style.ALARM in filled().svg()


def test_dots_have_a_median_and_a_logarithmic_axis_where_they_span_a_decade() -> None:
    narrow = groups.dots([("a cell", "cas", [1.0, 2.0, 9.0])], "ms")
    wide = groups.dots([("a cell", "cas", [1.0, 2.0, 90.0])], "ms")
    assert narrow
    assert wide
    assert [p.axes[0].get_xscale() for p in (narrow, wide)] == ["linear", "log"]
    assert np.asarray(wide.axes[0].lines[1].get_xdata())[0] == 2.0
    assert groups.dots([("a cell", "cas", [])], "ms") is None


def test_rows_of_a_frame_have_none_for_what_is_no_number() -> None:
    assert records(pd.DataFrame({"a": [1.5, math.nan]})) == [{"a": 1.5}, {"a": None}]
    assert records([{"a": "x"}]) == [{"a": "x"}]


# ---------------------------------------------------------------- style

ROOMS = (
    "analysis",
    "bench",
    "docs",
    "leaderless",
    "performance",
    "runs",
    "simulation",
    "specs",
    "workloads",
)
COLOUR = re.compile(r"(?<!&)#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b")
DARK = "#1d2024"  # the pages' darkest ground behind a picture
TABLES: dict[str, Mapping[Any, str]] = {
    "outcomes": style.OUTCOMES,
    "faults": style.FAULTS,
    "arrows": style.ARROWS,
    "causes": style.CAUSES,
    "quantiles": style.QUANTILES,
    "strategies": style.strategy_colours([*style.STRATEGIES, *"abcd"]),
    "series": dict(enumerate(style.SERIES)),
}


def sources(*suffixes: str) -> list[Path]:
    found = [file for room in ROOMS for file in (ROOT / room).rglob("*") if file.is_file()]
    return [file for file in found if file.suffix in suffixes]


def test_no_colour_is_written_outside_the_table() -> None:
    there = {
        str(file.relative_to(ROOT)): COLOUR.findall(file.read_text(encoding="utf-8"))
        for file in sources(".py", ".j2", ".js", "")
        if file != ROOT / "runs/plots/style.py" and not file.name.endswith(".pyc")
    }
    assert {file: colours for file, colours in there.items() if colours} == {}


def test_style_sheets_have_no_colour_of_the_table() -> None:
    known = {colour for table in TABLES.values() for colour in table.values()}
    (sheet,) = sources(".css")
    assert known.isdisjoint(COLOUR.findall(sheet.read_text(encoding="utf-8")))


def test_every_picture_of_the_documents_is_made_by_a_program_and_shown() -> None:
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for file in documents
        for name in re.findall(r"\]\((?:\S*/)?images/([\w.-]+)\)", file.read_text(encoding="utf-8"))
    }
    drawn = {name for _, names in pictures.PICTURES.values() for name in names}
    drawn |= {f"performance-{slope.name}.svg" for slope in SLOPES} | {crowd.PICTURE}
    drawn |= {story.picture.name for story in STORIES}
    notebooks = {file.stem for file in (ROOT / "analysis/notebooks").glob("*.ipynb")}
    assert drawn <= shown <= drawn | {f"notebook-{name}.png" for name in notebooks}
    assert {file.name for file in (ROOT / "docs" / "images").iterdir()} == shown


def test_every_fault_has_a_colour_of_its_own() -> None:
    assert set(style.FAULTS) == {*FAULTS, MUTE}
    assert len({*style.FAULTS.values(), style.fault_colour("of-jepsen")}) == len(FAULTS) + 2


def test_links_and_quantiles_of_runs_have_colours() -> None:
    assert set(style.LINKS) == set(LINKS)
    assert [*style.QUANTILES] == [*SHARES, "max"]
    assert set(style.ARROW_MEANINGS) == set(style.ARROWS)


@pytest.mark.parametrize("table", TABLES)
def test_colours_of_a_table_differ_and_read_on_white_and_on_dark(table: str) -> None:
    colours = [*TABLES[table].values()]
    assert len(set(colours)) == len(colours)
    for colour in colours:
        assert min(contrast(colour, style.PAPER), contrast(colour, DARK)) >= 3, colour
    # Two blues, 0.067 apart, were taken for one.
    assert [pair for pair in combinations(colours, 2) if distance(*pair) < 0.075] == []


def contrast(one: str, other: str) -> float:
    """[WCAG 2.2, contrast ratio]"""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """[WCAG 2.2, relative luminance]"""
    return float(np.dot((0.2126, 0.7152, 0.0722), linear(colour)))


def linear(colour: str) -> list[float]:
    """Red, green and blue, proportional to light."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def distance(one: str, other: str) -> float:
    """Of what eyes see: 0 the same, 1 black and white [Oklab, bottosson.github.io/posts/oklab]."""
    return float(np.linalg.norm(oklab(one) - oklab(other)))


def oklab(colour: str) -> Any:
    """Lightness, and how much green to red and blue to yellow."""
    cones = np.cbrt(TO_CONES @ linear(colour))
    return TO_OKLAB @ cones


TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def test_a_tint_lies_between_the_colour_and_white() -> None:
    assert style.tint("#204060", 1) == "#204060"
    assert style.tint("#204060", 0) == style.PAPER
    assert style.tint("#000000", 0.5) == "#808080"


def test_known_strategies_come_first_and_keep_their_colours() -> None:
    assert style.strategies(["10", "mine", "9", "cas", "leaderless", "cas"]) == [
        "leaderless",
        "cas",
        "9",
        "10",
        "mine",
    ]
    alone, together = style.strategy_colours(["cas"]), style.strategy_colours(["mine", "cas"])
    assert alone["cas"] == together["cas"] != together["mine"]
    marked = style.strategy_colours(["mine (invalid)", "cas (invalid)", "leaderless"])
    assert list(marked) == ["leaderless", "cas (invalid)", "mine (invalid)"]
    assert marked["cas (invalid)"] == alone["cas"]


def test_groups_stand_in_natural_order() -> None:
    assert sorted(["10", "cas", "9", "1.5"], key=style.natural) == ["1.5", "9", "10", "cas"]
