"""The pages in a real browser: nothing in its console, pictures with something in them, filters that filter.

Needs Chromium and its driver; without them these tests fail and say what to install.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from bench.pages.report import write_report
from bench.pages.sweep_page import SHOWN
from runs.sweeps import Row, append
from tests.browser import WAIT_S, Step, brightness, chromium, screen, walk
from tests.pages.page_stores import FIRST, REAL, SECOND, THIRD, keep, make_store, served, window

pytestmark = pytest.mark.browser
IS_SEEN = """const bar = [...document.querySelectorAll(".marked")].at(arguments[0]);
    const {top, left} = bar?.getBoundingClientRect() ?? {};
    return top >= 0 && top < innerHeight && left >= 0 && left < innerWidth"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_store(tmp_path_factory.mktemp("browser"))
    keep(made, window(0, 10, 250), window(1, 1234, 7), window(3, 1234, None))
    return made


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    with served(store) as address:
        yield address


@pytest.fixture(scope="module")
def opened() -> Iterator[Chrome]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(opened: Chrome) -> Iterator[Chrome]:
    """With an empty console, which must be empty at the end."""
    opened.get_log("browser")
    yield opened
    assert opened.get_log("browser") == []


def marks(browser: Chrome, selector: str) -> list[int]:
    """How many shapes each picture that is shown has really drawn: with an extent on the screen."""
    drawn: list[int] = browser.execute_script(
        """return [...document.querySelectorAll(arguments[0])].filter(svg => svg.checkVisibility()).map(svg =>
             [...svg.querySelectorAll("path, use, rect")].filter(each => {
               const box = each.getBoundingClientRect();
               return (box.width > 0 || box.height > 0) && !each.closest("defs");
             }).length)""",
        selector,
    )
    return drawn


def runs(*names: str) -> str:
    """A pattern of these runs in the list."""
    return f"^{len(names)}: {re.escape(' | '.join(names))}$"


LIST, WHOLE = "tbody input[name=run]", {"[role=status]": "^0"}
P99 = "//th[starts-with(., 'p99')]/button"
TIMELINE: list[Step] = [
    ("iframe", {"li": "^[1-9]"}),
    ("#filter := no such operation", {"#matches": ": 0 of "}),  # its script runs
]
# A page, and what stands there; what is clicked, and what stands there then.
JOURNEYS: dict[str, list[Step]] = {
    "filters work in the form": [
        ("/", {**WHOLE, LIST: runs(THIRD, SECOND, FIRST, REAL)}),
        # Choosing is enough.
        ("//select[@name='verdict']/option[.='invalid']", {LIST: runs(THIRD, SECOND, REAL)}),
        ("[name=q] := prefetch", {}),
        ("form.filters button", {LIST: runs(SECOND)}),
        ("//a[.='show all']", {LIST: runs(THIRD, SECOND, FIRST, REAL)}),
    ],
    "the list can be sorted": [
        ("/", WHOLE),
        # Programs with an invalid run stand behind.
        (P99, {"th[aria-sort=ascending]": "^1: p99", LIST: rf"^4: {FIRST} \| {SECOND} \|"}),
        (P99, {"th[aria-sort=descending]": "^1: p99", LIST: f"^4: {FIRST} .* {SECOND}$"}),
    ],
    "two runs are compared": [
        ("/", {**WHOLE, "#compare:disabled": "^1"}),
        ("tbody tr:nth-child(1) input", {"#compare:disabled": "^1"}),
        ("tbody tr:nth-child(2) input", {"#compare:enabled": "^1", f"{LIST}:disabled": "^2"}),
        ("#compare", {"h1": "^1: Two runs compared$"}),
    ],
    "the diagram of a run": [
        (f"/run/{THIRD}", {"#lamport img": "^1: [1-9]"}),
        ("//a[.='Lamport diagram of the first anomaly']", {"g.message": "^[1-9]"}),
    ],
    "the timeline of our run": [(f"/timeline/{FIRST}", {}), *TIMELINE],
    "the timeline of a run of the real tool": [(f"/timeline/{REAL}", {}), *TIMELINE],
    "a log": [(f"/file/{FIRST}/node-logs/n0.log", {"body": "n0 is up"})],
    "a file": [(f"/file/{FIRST}/test.json", {"body": "workload"})],
}


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey_through_pages(browser: Chrome, address: str, name: str) -> None:
    (page, seen), *steps = JOURNEYS[name]
    walk(browser, (address + page, seen), *steps)


@pytest.mark.parametrize(
    ("page", "selector", "least"),
    [
        (f"/compare?run={FIRST}&run={SECOND}", "#latency svg", [20, 20]),
        (f"/run/{THIRD}", "#latency svg", [50]),
        (f"/run/{THIRD}", "#throughput svg", [10]),
        (f"/run/{THIRD}", "#messages svg", [10]),
    ],
)
def test_pictures_are_drawn(
    browser: Chrome, address: str, page: str, selector: str, least: list[int]
) -> None:
    browser.get(address + page)
    drawn = marks(browser, selector)
    assert all(more > few for more, few in zip(drawn, least, strict=True)), drawn


def test_the_timeline_goes_to_the_operations_of_an_anomaly(browser: Chrome, address: str) -> None:
    walk(
        browser,
        (f"{address}/run/{THIRD}", {}),
        ("#anomalies td a", {"iframe": "^1"}),
        ("iframe", {}),
    )
    WebDriverWait(browser, WAIT_S).until(lambda page: page.execute_script(IS_SEEN, 0))
    walk(
        browser, *len(browser.find_elements(By.CSS_SELECTOR, ".marked")) * [("[data-step='1']", {})]
    )
    WebDriverWait(browser, WAIT_S).until(lambda page: page.execute_script(IS_SEEN, -1))


PAGES = (
    "/",
    f"/run/{THIRD}",
    f"/compare?run={FIRST}&run={THIRD}",
    "/sweep/sweeps/small",
    f"/timeline/{THIRD}",
    "/live/orders",
)


def test_nothing_scrolls_sideways_on_a_telephone(
    browser: Chrome, address: str, store: Path, tmp_path: Path
) -> None:
    """Neither a page nor a card, and no figure is cut off; only a diagram moves in its frame, like a map."""
    wider = """const right = document.documentElement.clientWidth + 1;
        const all = [...document.querySelectorAll("html, main *")];
        return all.filter(each => !each.closest("figure, .log") && !each.ownerSVGElement &&
            (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== "visible"
             || each.checkVisibility() && each.getBoundingClientRect().right > right))
          .map(each => each.tagName + "." + each.className)"""
    lowest_text = """const texts = [...document.querySelectorAll("svg text")];
        return Math.min(99, ...texts.filter(each => each.checkVisibility()).map(each => {
            const {a, b} = each.getScreenCTM();
            return each.getBBox().height * Math.hypot(a, b); }))"""
    with screen(browser, 400):
        reports = [
            write_report(store / name, tmp_path / f"{Path(name).name}.html").as_uri()
            for name in (THIRD, "sweeps/small")
        ]
        for page in [*(address + page for page in PAGES), *reports]:
            browser.get(page)
            assert browser.execute_script(wider) == [], page
            assert all(count > 3 for count in marks(browser, "svg")), page
            assert browser.execute_script(lowest_text) > 11, page  # pixels: it can be read
            if page in reports:  # the style is in the file
                border = "return getComputedStyle(document.querySelector('section')).borderTopStyle"
                assert browser.execute_script(border) == "solid", page


def test_a_traceback_keeps_its_indentation(browser: Chrome, tmp_path: Path) -> None:
    run = tmp_path / "echo" / "20260101T000000.000"
    run.mkdir(parents=True)
    error = 'Traceback:\n  File "node.py", line 1\n    raise KeyError(1)'
    (run / "results.json").write_text(json.dumps({"valid?": "unknown", "error": error}))
    browser.get(write_report(run, tmp_path / "report.html").as_uri())
    assert browser.find_element(By.CSS_SELECTOR, ".note").text == error  # as it is rendered


HIDDEN = """const list = document.querySelector(".scroll");
    const right = list.getBoundingClientRect().right;
    const cells = [...list.querySelectorAll("td, tbody th")];
    return cells.filter(cell => cell.getBoundingClientRect().right > right + 1).length"""


def test_all_figures_of_a_grade_are_seen(browser: Chrome, address: str, store: Path) -> None:
    (store / "wide").mkdir()
    for number, verdict in enumerate(("valid", "invalid")):
        figures: dict[str, float | None] = dict.fromkeys(SHOWN, 1234.5 * (1 + number))
        append(
            store / "wide",
            Row("wide", {"name": "when latencies vary"}, number, verdict=verdict, figures=figures),
        )
    with screen(browser, 1280):
        browser.get(f"{address}/sweep/wide")
        assert browser.execute_script(HIDDEN) == 0


@pytest.mark.parametrize("width", [400, 1100, 1900])
def test_the_list_needs_no_scrolling_sideways(browser: Chrome, address: str, width: int) -> None:
    with screen(browser, width):
        walk(
            browser,
            (
                f"{address}/",
                {**WHOLE, "tbody .badge": "^4: invalid . invalid . valid . inv"},
            ),
        )
        assert browser.execute_script(HIDDEN) == 0


@pytest.mark.parametrize(
    ("page", "ground", "text"),
    [
        (f"/run/{THIRD}", "section", "#latency svg"),
        (f"/lamport/{THIRD}", "svg", None),
        (f"/timeline-page/{FIRST}", "body", "h1"),
    ],
)
def test_a_dark_screen_has_dark_pages(
    browser: Chrome, address: str, page: str, ground: str, text: str | None
) -> None:
    browser.get(address + page)
    assert brightness(browser, ground, "backgroundColor") > 200
    with screen(browser, dark=True):
        assert brightness(browser, ground, "backgroundColor") < 60
        words = ("text", "fill") if text is None else (text, "color")
        assert brightness(browser, *words) > 130


def test_a_browser_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="without the program chromium"), chromium():
        pass
