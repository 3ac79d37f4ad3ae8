"""A bench in a browser tab: chapters, seeds, links, keys, screens, the dark. `make setup` brings Pyodide."""

import shlex
from collections.abc import Iterator
from dataclasses import replace

import pytest
from selenium.webdriver import Chrome, Keys

from bench.pages.tab import VERSION, chapters, write_tab
from simulation.commands.simulate_node import options_of, run_seed, simulate_node
from tests.browser import Step, brightness, chromium, screen, walk
from tests.pages.page_stores import served
from tests.programs import ROOT, need

pytestmark = pytest.mark.browser

PYODIDE = ROOT / f".venv/pyodide-{VERSION}/node_modules/pyodide"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Python starts once for all tests but that which stops it."""
    if not PYODIDE.is_dir():
        need("npm")
        pytest.skip("without Pyodide: make setup brings it")
    store = tmp_path_factory.mktemp("store")
    write_tab(store / "tab", PYODIDE)
    with served(store) as address, chromium() as browser:
        walk(browser, (f"{address}/tab/#xyz", {"#status": "This link is damaged"}))
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
    typed, told = f"#count := {Keys.CONTROL}a{Keys.NULL}{count}", chapters()[number - 1]
    words = ["--bin", str(told.failing), *shlex.split(told.flags)]
    options = options_of(simulate_node.make_context("simulate", words).params)
    digests = [run_seed(replace(options, seed=str(seed))).digest for seed in range(count)]
    shown = {f"li:nth-child({at}) [data-digest='{it}']": "^1" for at, it in enumerate(digests, 1)}
    walk(browser, *chapter(number), (typed, {}), ("#seeds", shown))
    walk(browser, (".seeds li:last-child button", {"#digest": f"^1: {digests[-1]}$"}))


MINE = f"#node := {Keys.CONTROL}{Keys.HOME}{Keys.NULL}"
FETCH = "x = __import__('js').XMLHttpRequest.new(); x.open('GET', '%s', False); x.send()\n"
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
    "a node without the kit is refused": [
        (f"#node := {Keys.CONTROL}a{Keys.NULL}print()", {}),
        ("#seeds", {"#status": "it must be Python that imports maelstrom_node"}),
    ],
    "an error of the node is shown with its line": [
        (f"{MINE}hidden = 1 / 0\n", {}),
        ("#run", {"#status": "Seed 0: crashed", ".note": "line 1.*ZeroDivisionError"}),
    ],
    "what runs is stopped": [
        *chapter(3, "passes"), ("#seeds", {"#status": "^1: [1-9]"}), ("#stop", {"#status": "Ready"}),
        ("#run", RIGHT),
    ],
    "the keyboard alone does it": [
        ("#chapter := 2", {}), (f":focus := {Keys.TAB}", {}), (f":focus := {Keys.ARROW_RIGHT}", {}),
        (f":focus := {Keys.TAB}", {}), (f":focus := {Keys.CONTROL}{Keys.ENTER}", RIGHT),
        *4 * [(f":focus := {Keys.TAB}", {})],
        (f":focus := {Keys.ENTER}", {"#status": "Seed 0 shows nothing wrong"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey(browser: Chrome, name: str) -> None:
    walk(browser, *JOURNEYS[name])


def test_a_link_holds_node_options_and_seed(browser: Chrome) -> None:
    changed: list[Step] = [(f"{MINE}# mine\n", {}), ("#flags :=  --latency 3", {})]
    walk(browser, *chapter(2, "passes"), *changed, ("#seed := 7", {}))
    walk(browser, ("#link", {"#status": "The address holds"}))
    held = {"#node": "^1: # mine\n#!", "#seed": "07$", "#flags": "unique-ids.*--latency 3$"}
    damaged = browser.current_url.replace("#", "#-")
    steps: list[Step] = [(damaged, {"#status": "damaged"}), *changed, ("#seed := 7", {})]
    walk(browser, *steps, (browser.current_url, held), ("#run", {"#status": "Seed 07: valid"}))


def test_a_node_reaches_no_page_of_a_run(browser: Chrome) -> None:
    asked = f"{MINE}{FETCH % browser.current_url.partition('tab/')[0]}"
    walk(browser, (asked, {}), ("#run", {"#status": "crashed", ".note": "NetworkError"}))
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


COLOURS = ("backgroundColor", "color")


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_scrolls_sideways_and_a_dark_screen_has_a_dark_page(
    browser: Chrome, width: int
) -> None:
    wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for dark in (False, True):
        with screen(browser, width, dark=dark):
            walk(browser, *chapter(5), ("#run", WRONG))
            assert browser.execute_script(wider) <= 0
            for place in ("#node", "section", "#seed"):
                ground, text = (brightness(browser, place, each) for each in COLOURS)
                assert (text - ground > 80) == dark == (ground < 200)
