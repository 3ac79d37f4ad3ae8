"""A bench in a browser tab: chapters, seeds, links, keys, screens, the dark. `make setup` brings Pyodide."""

import shlex
from collections.abc import Iterator
from dataclasses import replace

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from bench.options import TestOptions
from bench.pages.tab import VERSION, Chapter, chapters, write_tab
from simulation.commands.simulate_node import options_of, run_seed, simulate_node
from tests.browser import Step, brightness, chromium, screen, wait_for, walk
from tests.pages.page_stores import served
from tests.programs import ROOT, need

pytestmark = pytest.mark.browser

PYODIDE = ROOT / f".venv/pyodide-{VERSION}/node_modules/pyodide"
CHAPTERS = chapters()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PYODIDE.is_dir():
        need("npm")
        pytest.skip("without Pyodide: make setup brings it")
    store = tmp_path_factory.mktemp("tab")
    write_tab(store / "tab", PYODIDE)
    with served(store) as address:
        yield f"{address}/tab/"


@pytest.fixture(scope="module")
def opened(page: str) -> Iterator[Chrome]:
    """Python starts once for all tests but that which stops it."""
    with chromium() as browser:
        walk(browser, (f"{page}#xyz", {"#status": "This link is damaged"}))
        yield browser


@pytest.fixture
def browser(opened: Chrome) -> Iterator[Chrome]:
    """At the first chapter, with an empty console, which must be empty at the end."""
    opened.execute_script("given = document.querySelector('#node').value")  # nobody is asked
    walk(opened, *chapter(2), *chapter(1))
    opened.get_log("browser")
    yield opened
    assert opened.get_log("browser") == []


def chapter(number: int, which: str = "fails") -> list[Step]:
    return [(f"#chapter option:nth-child({number})", {}), (f"#{which}", {})]


def digests(each: Chapter, count: int) -> list[str]:
    words = ["--bin", str(each.failing), *shlex.split(each.flags)]
    flags = simulate_node.make_context("simulate", words).params
    options: TestOptions = options_of(flags)
    return [run_seed(replace(options, seed=str(seed))).digest for seed in range(count)]


WRONG = {"#status": "Seed 0: invalid", ".finding p": "^[1-9]", "figure img": "^1: [1-9]"}
RIGHT = {"#status": "Seed 0: valid", ".finding": "^0"}


@pytest.mark.parametrize("number", range(1, 8))
def test_the_node_of_a_chapter_fails_and_the_other_passes(browser: Chrome, number: int) -> None:
    walk(browser, *chapter(number), ("#run", WRONG))
    walk(browser, *chapter(number, "passes"), ("#run", RIGHT))


@pytest.mark.parametrize(
    ("number", "count"),
    [(3, 6), *(pytest.param(each, 50, marks=pytest.mark.seeds) for each in range(1, 8))],
)
def test_seeds_have_the_digests_of_the_command_line(
    browser: Chrome, number: int, count: int
) -> None:
    typed = f"#count := {Keys.CONTROL}a{Keys.NULL}{count}"
    found = [(f".seeds li:nth-child({done})", "^1") for done in range(1, count + 1)]
    walk(browser, *chapter(number), (typed, {}), ("#seeds", dict(found)))
    buttons = browser.find_elements(By.CSS_SELECTOR, ".seeds button")
    told = [each.get_attribute("data-digest") for each in buttons]
    assert told == digests(CHAPTERS[number - 1], count)
    buttons[-1].click()
    wait_for(browser, "#digest", f"^1: {told[-1]}$")


MINE = f"#node := {Keys.CONTROL}{Keys.HOME}{Keys.NULL}"
END = f"#node := {Keys.CONTROL}{Keys.END}{Keys.NULL}"
# What is clicked or typed, and what stands there then.
JOURNEYS: dict[str, list[Step]] = {
    "a run that fails is shrunk": [
        ("#shrink",
         {"#status": "smallest run .* has 2 operations", "#flags": "--rate", ".finding": "wrong-echo"}),
    ],
    "a run that passes is not": [
        *chapter(1, "passes"), ("#shrink", {"#status": "Seed 0 shows nothing wrong"}),
    ],
    "options are those of the command": [
        ("#flags :=  --rat 5", {}), ("#run", {"#status": "No such option '--rat'"}),
        *chapter(2), ("#flags :=  --seeds 5", {}), ("#run", {"#status": "--seeds: this page has a button"}),
        *chapter(1), ("#flags :=  --log '", {}), ("#run", {"#status": "No closing quotation"}),
    ],
    "what no seed decides is refused with its line": [
        (f"{MINE}import time; time.sleep(1)\n", {}), ("#run", {"#status": "/node.py:1: sleep: it would"}),
    ],
    "an error of the node is shown with its line": [
        (f"{MINE}hidden = 1 / 0\n", {}),
        ("#run", {"#status": "Seed 0: crashed", ".note": "line 1.*ZeroDivisionError"}),
    ],
    "what runs is stopped": [
        *chapter(3, "passes"), ("#seeds", {"#status": "^1: [1-9]"}), ("#stop", {"#status": "Ready"}),
        ("#run", {"#status": "Seed 0: valid"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey(browser: Chrome, name: str) -> None:
    walk(browser, *JOURNEYS[name])


def test_a_link_holds_node_options_and_seed(browser: Chrome, page: str) -> None:
    changed = [(f"{MINE}# mine\n", {}), ("#flags :=  --latency 3", {}), ("#seed := 7", {})]
    walk(browser, *chapter(2, "passes"), *changed, ("#link", {"#status": "The address holds"}))
    address, held = browser.current_url, {"#node": "^1: # mine\n#!", "#seed": "07"}
    walk(browser, (f"{page}#xyz", {"#status": "This link is damaged"}))
    browser.execute_script("given = document.querySelector('#node').value")
    walk(browser, *chapter(1), (address, {**held, "#flags": "unique-ids.*--latency 3"}))
    walk(browser, ("#run", {"#status": "Seed 07: valid"}))


def test_the_keyboard_alone_does_it(browser: Chrome) -> None:
    def typed(*keys: str) -> None:
        for each in keys:
            browser.switch_to.active_element.send_keys(each)

    browser.execute_script("document.querySelector('#chapter').focus()")
    typed("2", Keys.TAB, Keys.ARROW_RIGHT, Keys.TAB, Keys.CONTROL + Keys.ENTER)
    wait_for(browser, "#status", "Seed 0: valid")
    typed(*4 * [Keys.TAB], Keys.ENTER)
    wait_for(browser, "#status", "Seed 0 shows nothing wrong")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_scrolls_sideways_and_a_dark_screen_has_a_dark_page(
    browser: Chrome, width: int
) -> None:
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for dark in (False, True):
        with screen(browser, width, dark=dark):
            walk(browser, *chapter(5), ("#run", {"#status": "Seed 0: invalid"}))
            assert browser.execute_script(wider) <= 0
            for place in ("#node", "section", "#seed"):
                ground = brightness(browser, place, "backgroundColor")
                text = brightness(browser, place, "color")
                assert (text - ground > 80) == dark
                assert (ground - text > 140) != dark
