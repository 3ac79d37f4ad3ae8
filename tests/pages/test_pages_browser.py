"""The pages in a real browser: nothing in its console, pictures with something in them, filters that filter.

Needs Chromium and its driver; without them these tests fail and say what to install.
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import Select, WebDriverWait

from bench.commands.serve import make_server
from bench.pages.report import write_report
from tests.browser import brightness, chromium, screen
from tests.pages.page_stores import FIRST, REAL, SECOND, THIRD, keep, make_store, window

pytestmark = pytest.mark.browser
IS_SEEN = """const bar = [...document.querySelectorAll(".marked")].at(arguments[0]);
    const {top, left} = bar?.getBoundingClientRect() ?? {};
    return top >= 0 && top < innerHeight && left >= 0 && left < innerWidth"""
WAIT_S = 60  # for a machine under load; nothing waits for it when all is well


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_store(tmp_path_factory.mktemp("browser"))
    keep(made, window(0, 10, 250), window(1, 1234, 7), window(3, 1234, None))
    return made


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    server = make_server(store, 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


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


def shown(browser: Chrome) -> list[str]:
    """Names of the runs in the list."""
    boxes = browser.find_elements(By.CSS_SELECTOR, "tbody input[name=run]")
    return [box.get_attribute("value") or "" for box in boxes]


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


def follow(browser: Chrome, by: str, what: str) -> None:
    """Click, and wait for the next page."""
    body = browser.find_element(By.TAG_NAME, "body")
    browser.find_element(by, what).click()
    WebDriverWait(browser, WAIT_S).until(staleness_of(body))


def load_list(browser: Chrome, address: str) -> None:
    """The list with all figures; it comes again by itself while it has not all of them."""
    browser.get(address)
    WebDriverWait(browser, WAIT_S).until(
        lambda page: not page.find_elements(By.CSS_SELECTOR, "[role=status]")
    )


def test_filters_work_in_the_form(browser: Chrome, address: str) -> None:
    load_list(browser, address)
    assert shown(browser) == [THIRD, SECOND, FIRST, REAL]
    body = browser.find_element(By.TAG_NAME, "body")
    Select(browser.find_element(By.NAME, "verdict")).select_by_visible_text("invalid")
    WebDriverWait(browser, WAIT_S).until(staleness_of(body))  # choosing is enough
    assert shown(browser) == [THIRD, SECOND, REAL]
    browser.find_element(By.NAME, "q").send_keys("prefetch")
    follow(browser, By.CSS_SELECTOR, "form.filters button")
    assert shown(browser) == [SECOND]
    follow(browser, By.LINK_TEXT, "show all")
    assert len(shown(browser)) == 4


def test_the_list_can_be_sorted(browser: Chrome, address: str) -> None:
    load_list(browser, address)
    head = next(
        each for each in browser.find_elements(By.CSS_SELECTOR, "th") if each.text.startswith("p99")
    )
    button = head.find_element(By.TAG_NAME, "button")
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert shown(browser)[:2] == [FIRST, SECOND]  # programs with an invalid run stand behind
    button.click()
    assert [shown(browser)[at] for at in (0, -1)] == [FIRST, SECOND]


def test_two_runs_are_compared(browser: Chrome, address: str) -> None:
    load_list(browser, address)
    button = browser.find_element(By.ID, "compare")
    boxes = browser.find_elements(By.CSS_SELECTOR, "tbody input[name=run]")
    assert not button.is_enabled()
    boxes[0].click()
    boxes[1].click()
    assert not boxes[2].is_enabled()
    assert button.is_enabled()
    follow(browser, By.ID, "compare")
    assert browser.find_element(By.TAG_NAME, "h1").text == "Two runs compared"
    pictures = marks(browser, "#latency svg")
    assert len(pictures) == 2
    assert min(pictures) > 20


def test_the_page_of_a_run(browser: Chrome, address: str) -> None:
    browser.get(f"{address}/run/{THIRD}")
    for selector, least in (("#latency svg", 50), ("#throughput svg", 10), ("#messages svg", 10)):
        assert min(marks(browser, selector)) > least, selector
    diagram = browser.find_element(By.CSS_SELECTOR, "#lamport img")
    loaded = "return arguments[0].complete && arguments[0].naturalWidth"
    WebDriverWait(browser, WAIT_S).until(lambda page: page.execute_script(loaded, diagram))
    follow(browser, By.LINK_TEXT, "Lamport diagram of the first anomaly")
    assert browser.find_elements(By.CSS_SELECTOR, "g.message")


@pytest.mark.parametrize("name", [FIRST, REAL])
def test_the_timeline(browser: Chrome, address: str, name: str) -> None:
    browser.get(f"{address}/timeline/{name}")
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    WebDriverWait(browser, WAIT_S).until(lambda page: page.find_elements(By.TAG_NAME, "li"))
    browser.find_element(By.ID, "filter").send_keys("no such operation")
    assert browser.find_element(By.ID, "matches").text.startswith("0 of ")  # its script runs
    browser.switch_to.default_content()


def test_the_timeline_goes_to_the_operations_of_an_anomaly(browser: Chrome, address: str) -> None:
    browser.get(f"{address}/run/{THIRD}")
    follow(browser, By.CSS_SELECTOR, "#anomalies td a")
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    WebDriverWait(browser, WAIT_S).until(lambda page: page.execute_script(IS_SEEN, 0))
    for _ in browser.find_elements(By.CSS_SELECTOR, ".marked"):
        browser.find_element(By.CSS_SELECTOR, "[data-step='1']").click()
    WebDriverWait(browser, WAIT_S).until(lambda page: page.execute_script(IS_SEEN, -1))
    browser.switch_to.default_content()


@pytest.mark.parametrize(
    "page", [f"/log/{FIRST}/node-logs/n0.log", "/sweep/sweeps/small", f"/file/{FIRST}/test.json"]
)
def test_other_pages(browser: Chrome, address: str, page: str) -> None:
    browser.get(address + page)
    assert browser.find_element(By.TAG_NAME, "body").text.strip()
    assert all(count > 3 for count in marks(browser, "svg"))


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
            assert browser.execute_script(lowest_text) > 8, page  # pixels: it can be read
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


@pytest.mark.parametrize("width", [400, 1100, 1900])
def test_the_list_needs_no_scrolling_sideways(browser: Chrome, address: str, width: int) -> None:
    hidden = """const list = document.querySelector(".scroll");
        const right = list.getBoundingClientRect().right;
        const cells = [...list.querySelectorAll("td, tbody th")];
        return cells.filter(cell => cell.getBoundingClientRect().right > right + 1).length"""
    with screen(browser, width):
        load_list(browser, address)
        verdicts = browser.find_elements(By.CSS_SELECTOR, "tbody .badge")
        assert [each.text for each in verdicts] == ["invalid", "invalid", "valid", "invalid"]
        assert browser.execute_script(hidden) == 0


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
    with pytest.raises(RuntimeError, match="apt-get install chromium chromium-driver"), chromium():
        pass
