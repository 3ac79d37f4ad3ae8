"""The explorer's page in a real browser: forward and back, to the failure, stories, a telephone, the dark."""

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from bench.pages.explorer import Book, model_books, write_explorer
from simulation.exploration.book import book_of
from simulation.exploration.setting import Setting
from specs.stories import STORIES
from tests.browser import brightness, chromium, screen

pytestmark = pytest.mark.browser

FAILING = Setting(strategy="leader", polls=0, crashes=1)  # a killed leader forgets the log
SOUND = Setting(sends=1, polls=0, lost=1)
STORY = "BookKeeper: an entry is lost in recovery"


@pytest.fixture(scope="module")
def books() -> list[Book]:
    story = next(story for story in STORIES if story.page == "bookkeeper")
    return [book_of(FAILING, title="a leader that dies"), book_of(SOUND), *model_books([story])]


@pytest.fixture(scope="module")
def page(books: list[Book], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("explorer") / "explorer.html"
    write_explorer(file, books)
    return file.as_uri()


@pytest.fixture(scope="module")
def opened() -> Iterator[Chrome]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(opened: Chrome, page: str) -> Iterator[Chrome]:
    """At the beginning of the first book, with an empty console, which must be empty at the end."""
    opened.get("about:blank")
    opened.get_log("browser")
    opened.get(page)
    yield opened
    assert opened.get_log("browser") == []


def find(browser: Chrome, name: str) -> WebElement:
    return browser.find_element(By.ID, name)


def words(browser: Chrome, name: str) -> str:
    return find(browser, name).text


def events(browser: Chrome) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, "#events button")


def steps(browser: Chrome) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, "#path button")


def test_an_event_is_chosen_and_taken_back(browser: Chrome) -> None:
    offered = [each.text for each in events(browser)]
    assert offered[1].startswith("Client c2 makes its next request")
    events(browser)[1].click()
    assert words(browser, "said").startswith("Client c2 makes its next request")
    assert words(browser, "where") == "step 1 of 1"
    assert browser.find_elements(By.CSS_SELECTOR, ".card.new")  # its message is on its way
    find(browser, "back").click()
    assert words(browser, "said") == "The beginning."
    assert "taken before" in events(browser)[1].text
    events(browser)[0].click()  # another one: the way is another one, too
    assert [each.text.splitlines()[-1] for each in steps(browser)][1] == offered[0]


def test_the_keys_step_and_a_step_of_the_list_leads_back(browser: Chrome) -> None:
    body = browser.find_element(By.TAG_NAME, "body")
    for _ in range(3):
        body.send_keys(Keys.ARROW_RIGHT)
    assert words(browser, "where") == "step 3 of 3"
    body.send_keys(Keys.ARROW_LEFT)
    assert words(browser, "where") == "step 2 of 3"
    steps(browser)[1].click()
    assert words(browser, "where") == "step 1 of 3"
    find(browser, "next").click()
    assert words(browser, "where") == "step 2 of 3"  # along the way that was taken


def test_it_goes_to_the_nearest_failure(browser: Chrome, books: list[Book]) -> None:
    find(browser, "failure").click()
    assert "a law is broken" in words(browser, "where")
    laws = {v.law for state in books[0].states for v in state.verdicts if not v.holds}
    assert any(law in words(browser, "broken") for law in laws)
    assert not find(browser, "next").is_enabled()
    assert not events(browser)
    assert len(steps(browser)) > 3
    assert browser.find_elements(By.CSS_SELECTOR, "#lanes line:not(.life)")
    find(browser, "start").click()
    assert words(browser, "broken") == ""


def test_a_reload_leads_back_to_the_same_state(browser: Chrome) -> None:
    find(browser, "failure").click()
    find(browser, "back").click()
    where, said = words(browser, "where"), words(browser, "said")
    browser.refresh()
    assert (words(browser, "where"), words(browser, "said")) == (where, said)


def test_a_sound_search_offers_no_failure(browser: Chrome, books: list[Book]) -> None:
    Select(find(browser, "book")).select_by_index(1)
    assert not find(browser, "failure").is_displayed()
    assert books[1].command in words(browser, "covered")
    while find(browser, "next").is_enabled():
        find(browser, "next").click()
    assert words(browser, "where").endswith("an end")
    find(browser, "kept").click()
    assert "The end was judged" in words(browser, "laws")


def test_a_story_is_stepped_to_its_end(browser: Chrome, books: list[Book]) -> None:
    Select(find(browser, "book")).select_by_visible_text(STORY)
    count = len(books[2].states) - 1
    assert words(browser, "where") == f"step 0 of {count}"
    assert len(events(browser)) == 1
    for _ in range(count):
        find(browser, "next").click()
    assert "NoDivergenceBetweenWriterAndMetaData" in words(browser, "broken")
    find(browser, "back").click()
    assert words(browser, "broken") == ""


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_scrolls_sideways(browser: Chrome, books: list[Book], width: int) -> None:
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with screen(browser, width):
        for number in range(len(books)):
            Select(find(browser, "book")).select_by_index(number)
            while find(browser, "next").is_enabled():
                assert browser.execute_script(wider) <= 0
                find(browser, "next").click()
            assert browser.execute_script(wider) <= 0


def test_a_dark_screen_has_a_dark_page(browser: Chrome) -> None:
    for dark in (False, True):
        with screen(browser, 1280, dark=dark):
            ground = brightness(browser, "section", "backgroundColor")
            text = brightness(browser, ".events button", "color")
            assert (text - ground > 80) == dark
            assert (ground - text > 140) != dark
