"""The explorer's page in a real browser: forward and back, to the failure, stories, a telephone, the dark."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from bench.pages.explorer import write_explorer
from simulation.exploration.book import book_of
from simulation.exploration.setting import Setting
from specs.stories import STORIES
from tests.browser import Step, brightness, chromium, screen, wait_for, walk
from tests.mutants.counterexamples import model_book

pytestmark = pytest.mark.browser

FAILING = Setting(strategy="leader", polls=0, crashes=1)  # a killed leader forgets the log
SOUND = Setting(sends=1, polls=0, lost=1)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("explorer") / "explorer.html"
    stories = [story for story in STORIES if story.page == "bookkeeper"]
    searched = [book_of(FAILING, title="a leader that dies"), book_of(SOUND)]
    write_explorer(file, [*searched, *map(model_book, stories)])
    return file.as_uri()


@pytest.fixture(scope="module")
def opened() -> Iterator[Chrome]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(opened: Chrome, page: str) -> Iterator[Chrome]:
    """At the beginning of the first book, a search, with an empty console, which must be empty at the end."""
    opened.get("about:blank")
    opened.get_log("browser")
    opened.get(f"{page}#0/0/")
    yield opened
    assert opened.get_log("browser") == []


SECOND = "#events li:nth-child(2)"
RIGHT, LEFT = f"body := {Keys.ARROW_RIGHT}", f"body := {Keys.ARROW_LEFT}"
NEXT: Step = ("#next", {})
AT_FIVE = {"#where": "step 5 of 6", "#said": "n0 is killed, and starts again"}
# What is clicked, and what stands there then.
JOURNEYS: dict[str, list[Step]] = {
    "an event is chosen and taken back": [
        (f"{SECOND} button",
         {"#said": "Client c2 makes its next request", "#where": "step 1 of 1$",
          ".card.new": "^[1-9]"}),  # its message is on its way
        ("#back", {"#said": "The beginning", SECOND: "Client c2 makes .*taken before"}),
        # Another one: the way is another one, too.
        ("#events button", {"#path li:nth-child(2)": "Client c1 makes its next request"}),
    ],
    "a number chooses an event": [
        ("body := 2", {"#said": "Client c2 makes", "#where": "step 1 of 1$"}),
        ("body := 9", {"#where": "step 1 of 1$"}),  # there are fewer
    ],
    "the keys step, and a step of the list leads back": [
        (RIGHT, {}), (RIGHT, {}),
        (RIGHT, {"#where": "step 3 of 3"}),
        (LEFT, {"#where": "step 2 of 3"}),
        ("#path li:nth-child(2) button", {"#where": "step 1 of 3"}),
        ("#next", {"#where": "step 2 of 3"}),  # along the way that was taken
    ],
    "it goes to the nearest failure": [
        ("#failure",
         {"#where": "a law is broken", "#broken": "unseen|inconsistent-offsets",
          "#next:disabled": "^1", "#events button": "^0", "#path button": "^7",
          "#lanes line:not(.life)": "^[1-9]"}),
        ("#start", {"#broken": ": $"}),
    ],
    "a reload leads back to the same state": [
        ("#failure", {}), ("#back", AT_FIVE), ("reload", AT_FIVE),
    ],
    "a sound search offers no failure": [
        ("#book option:nth-child(2)",
         {"#failure": "^0", "#covered": "explore --strategy leaderless .*--sends 1 --polls 0 --lost 1$"}),
        *5 * [NEXT],
        ("#next", {"#next:disabled": "^1", "#where": "an end$"}),
        ("#kept", {"#laws": "The end was judged"}),
    ],
    "a story is stepped to its end": [
        ("//option[.='BookKeeper: an entry is lost in recovery']",
         {"#where": "step 0 of 12", "#events button": "^1"}),
        *11 * [NEXT],
        ("#next", {"#broken": "NoDivergenceBetweenWriterAndMetaData"}),
        ("#back", {"#broken": ": $"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey(browser: Chrome, name: str) -> None:
    walk(browser, *JOURNEYS[name])


def test_it_opens_on_a_story_that_fails(browser: Chrome, page: str) -> None:
    browser.get("about:blank")
    browser.get(page)
    wait_for(browser, "#where", "step 0 of 12")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_scrolls_sideways(browser: Chrome, width: int) -> None:
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with screen(browser, width):
        for book in browser.find_elements(By.CSS_SELECTOR, "#book option"):
            book.click()
            while following := browser.find_elements(By.CSS_SELECTOR, "#next:enabled"):
                assert browser.execute_script(wider) <= 0
                following[0].click()
            assert browser.execute_script(wider) <= 0


def test_steps_that_are_still_to_come_can_be_read(browser: Chrome, page: str) -> None:
    """The contrast of WCAG 2, with what makes text transparent."""
    contrast = """const first = selector => document.querySelector(selector);
        const step = first(".way li.later span"), ground = first("section");
        const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
        const parts = name => numbers(getComputedStyle(name === "color" ? step : ground)[name]);
        let seen = 1;
        for (let each = step; each; each = each.parentElement) seen *= getComputedStyle(each).opacity;
        const under = parts("backgroundColor");
        const text = parts("color").map((part, i) => seen * part + (1 - seen) * under[i]);
        const light = colour => colour.slice(0, 3).map(c => c / 255)
          .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
          .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
        const [dark, bright] = [light(text), light(under)].sort((a, b) => a - b);
        return (bright + .05) / (dark + .05);"""
    browser.get(page)
    wait_for(browser, "#where", "step 0 of 12")
    for dark in (False, True):
        with screen(browser, 1280, dark=dark):
            assert browser.execute_script(contrast) >= 4.5


def test_a_dark_screen_has_a_dark_page(browser: Chrome) -> None:
    for dark in (False, True):
        with screen(browser, 1280, dark=dark):
            ground = brightness(browser, "section", "backgroundColor")
            text = brightness(browser, ".events button", "color")
            assert (text - ground > 80) == dark
            assert (ground - text > 140) != dark
