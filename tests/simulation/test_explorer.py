"""The explorer's page: its graphs have every state and every event of a search, and say what is broken."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.pages.explorer import Book, document, write_explorer
from simulation.commands.explore import explore
from simulation.exploration import shown
from simulation.exploration.book import book_of
from simulation.exploration.campaign import systems_of
from simulation.exploration.graph import Graph, walked
from simulation.exploration.search import Event, Failing, Search, System
from simulation.exploration.setting import Setting
from simulation.logs import PUBLISHED
from specs.stories import STORIES
from tests.mutants.counterexamples import model_book
from tests.mutants.tales import line, tale_of, way_to_failure
from tests.programs import ROOT
from tests.simulation.exploring import Steppers

pytestmark = pytest.mark.simulation

RACE = {"a": ("get", "add"), "b": ("get", "add")}
LOSSY = Setting(polls=0, lost=1)
HOLE = Setting(strategy="prefetch", sends=3)
OVERWRITTEN = Setting(PUBLISHED, programs=True, before=2, sends=1, compactions=1)


def race() -> Steppers:
    return Steppers(RACE, lambda values: values["register"] == 2)


def digest(system: System) -> bytes:
    return system.digest()


def whole(make: Callable[[], System]) -> Search:
    """A search that leaves out no event."""
    search = Search()
    search.run(make, lambda: False)
    return search


def ways(graph: Graph[Any]) -> dict[int, tuple[Event, ...]]:
    """A way to each state that can be reached."""
    found: dict[int, tuple[Event, ...]] = {0: ()}
    for number in (todo := [0]):
        for event, target in graph.arrows[number] or ():
            if target not in found:
                found[target] = (*found[number], event)
                todo.append(target)
    return found


# ---------------------------------------------------------------- the graph


@pytest.mark.parametrize(
    "setting",
    [LOSSY, Setting(strategy="cas", sends=1), Setting(PUBLISHED, programs=True, sends=2)],
    ids=lambda setting: setting.command(),
)
def test_a_graph_has_the_states_and_the_events_of_a_search(setting: Setting) -> None:
    search = whole(systems_of(setting))
    graph = walked(systems_of(setting), digest)
    assert {seen.state for seen in graph.states} == set(search.states)
    assert (graph.events, graph.cut) == (search.counts.events, 0)
    assert {seen.state for seen in graph.states if seen.end} == search.ends


@pytest.mark.parametrize("setting", [LOSSY, OVERWRITTEN], ids=lambda setting: setting.command())
def test_every_state_is_reached_by_the_events_on_the_way(setting: Setting) -> None:
    make = systems_of(setting)
    graph = walked(make, digest)
    found = ways(graph)
    assert found.keys() == {*range(len(graph.states))}
    for number in [*found][:: len(found) // 25]:
        system = make()
        for event in found[number]:
            system.step(event)
        assert system.digest() == graph.states[number].state
        arrows = graph.arrows[number]
        assert [arrow.event for arrow in arrows or ()] == [*system.enabled()]


def test_what_fails_is_reached_and_told() -> None:
    graph = walked(race, digest)
    way = way_to_failure(graph)
    assert way is not None
    assert [event.what for event in way] in (["a", "b", "a", "b"], ["a", "b", "b", "a"])
    failed = [seen.failed for seen in graph.states if seen.failed]
    assert {each.name for each in failed if each} == {"LostUpdate"}
    assert walked(race, digest, stop=True).events < graph.events


class Breaks(Steppers):
    """Fails in the step in which `b` writes."""

    def step(self, event: Event) -> None:
        act = self._acts[event.what][self._at[event.what]]
        super().step(event)
        if (event.what, act) == ("b", "add"):
            raise Failing("Broken", "b wrote")


def test_a_step_that_fails_leads_to_a_state_of_its_own() -> None:
    graph = walked(lambda: Breaks(RACE), digest)
    failed = [number for number, seen in enumerate(graph.states) if seen.failed]
    assert failed
    assert all(graph.arrows[number] == [] for number in failed)
    told = line(lambda: Breaks(RACE), digest, [Event("step", "b"), Event("step", "b")])
    assert [seen.failed and seen.failed.name for seen in told.states] == [None, None, "Broken"]


def test_a_schedule_that_cannot_happen_is_refused() -> None:
    with pytest.raises(ValueError, match="step c cannot happen there"):
        line(race, digest, [Event("step", "c")])


# ---------------------------------------------------------------- books


@pytest.fixture(scope="module")
def hole() -> Book:
    """A cut search whose failing schedule is far from the beginning."""
    schedule = whole(systems_of(HOLE)).failed
    assert schedule
    return book_of(HOLE, along=schedule.schedule, events_max=300)


def broken(book: Book) -> list[str]:
    return [
        verdict.law for shown_ in book.states for verdict in shown_.verdicts if not verdict.holds
    ]


def test_a_cut_search_says_so_and_keeps_the_schedule_that_fails(hole: Book) -> None:
    assert "Cut after" in hole.covered
    assert None in hole.edges
    assert broken(hole) == ["int-poll-skip"]


def test_a_state_shows_registers_nodes_clients_and_messages() -> None:
    book = book_of(Setting(nodes=1, sends=1, polls=0))
    cards = [
        f"{name} | {card.title} | {fact[0]} | {fact[1]}"
        for state in book.states
        for name, pane in zip(book.panes, state.panes, strict=True)
        for card in pane
        for fact in card.facts
    ]
    assert "Store | head | slot 0 | k: [0] from offset 0 (batch 1 of n0.i1/0)" in cards
    assert "Nodes | n0 | next offset of k | 1" in cards
    assert "Clients | c1 | was told | send_ok offset 0" in cards
    assert "Messages on their way | n0 → lin-kv: cas head | create if not exists | true" in cards
    assert not broken(book)
    sentences = [edge.happening.sentence for edges in book.edges for edge in edges or ()]
    assert sentences[0] == "client c1 makes its next request: send 0, through n0"
    signals = [signal for edges in book.edges for edge in edges or () for signal in edge.signals]
    assert signals[:3] == ["+c1>n0 send 1", "-c1>n0 send 1", "+n0>lin-kv read 1000001"]
    sent, arrived = ({each[1:] for each in signals if each[0] == sign} for sign in "+-")
    assert sent == arrived  # nothing is lost, and all is delivered in the end


def test_faults_and_lost_messages_are_told() -> None:
    book = book_of(Setting(nodes=1, sends=1, polls=0, lost=1, crashes=1))
    edges = [edge for edges in book.edges for edge in edges or ()]
    faults = {edge.happening.sentence for edge in edges if edge.happening.fault}
    assert "n0 → lin-kv: read head is lost" in faults
    assert "n0 is killed, and starts again" in faults
    assert any(signal[0] == "x" for edge in edges for signal in edge.signals)


def test_only_messages_between_nodes_are_lost_by_a_cut() -> None:
    book = book_of(Setting(strategy="leader", polls=0, partitions=1))
    lost = [
        signal
        for edges in book.edges
        for edge in edges or ()
        for signal in edge.signals
        if signal[0] == "x"
    ]
    assert lost
    assert not any("lin-kv" in signal for signal in lost)
    book = book_of(Setting(strategy="cas", sends=1, polls=0, partitions=1))
    assert not any(s[0] == "x" for edges in book.edges for e in edges or () for s in e.signals)


def test_a_lost_write_is_told_with_objects_programs_and_clients() -> None:
    way = way_to_failure(walked(systems_of(OVERWRITTEN), digest, stop=True))
    assert way is not None
    book = tale_of(OVERWRITTEN, way, group="g", title="t", about="a")
    assert broken(book) == ["unseen"]
    assert len(book.states) == len(way) + 1
    entries = {card.title for card in book.states[0].panes[0]}
    assert {"k/index/…1", "k/meta/sequence-counter"} <= entries
    _, programs, (producer, _), *_ = book.states[-1].panes
    assert ("asks", "send 2 (through p0)") in producer.facts
    assert ("was told", "send_ok offset 3") in producer.facts
    assert [card.facts[-1] for card in programs] == [("now", "has ended")] * 2


def test_a_counterexample_of_a_model_ends_with_the_broken_law() -> None:
    story = next(story for story in STORIES if story.page == "bookkeeper")
    book = model_book(story)
    assert broken(book) == ["NoDivergenceBetweenWriterAndMetaData"]
    assert all(verdict.holds for verdict in book.states[-2].verdicts)
    page = (ROOT / "docs/evidence/models/bookkeeper.md").read_text(encoding="utf-8")
    told = [edge.happening.sentence for edges in book.edges for edge in edges or ()]
    assert all(sentence[1:] in page for sentence in told)


def test_every_law_that_is_shown_is_one_that_is_judged() -> None:
    rooms = ("simulation", "leaderless")
    sources = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    text = "\n".join(file.read_text() for file in sources if "shown" not in file.name)
    laws = [law for its in shown.LAWS.values() for law in its]
    assert [law for law in laws if not re.search(rf'"{law}"|"{law}: |f"{law}: ', text)] == []


# ---------------------------------------------------------------- the page


def test_each_place_in_the_document_is_in_its_table(hole: Book) -> None:
    told = document([hole])
    [book] = told["books"]
    for state in book["states"]:
        *panes, verdicts, end = state
        assert len(panes) == len(book["panes"])
        assert max(panes) < len(told["paneTable"])
        assert verdicts < len(told["verdicts"])
        assert end in (0, 1)
    assert max(card for pane in told["paneTable"] for card in pane) < len(told["cards"])
    for edges in filter(None, book["edges"]):
        assert max(edges[0::3]) < len(told["happenings"])
        assert max(edges[1::3]) < len(book["states"])
        assert max(edges[2::3]) < len(told["signals"])


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "pages" / "search.html"
    words = ["--strategy", "cas", "--sends", "1", "--polls", "0", "--page", str(file)]
    result = CliRunner().invoke(explore, words)
    assert result.exit_code == 0, result.output
    page = file.read_text(encoding="utf-8")
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg", "", page)  # nothing from elsewhere
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    [book] = json.loads(found[1])["books"]
    assert book["command"] == "./maelstrom explore --strategy cas --nodes 2 --sends 1 --polls 0"
    assert book["covered"].startswith("All that may happen: ")


def test_no_text_ends_the_script_that_holds_it(tmp_path: Path, hole: Book) -> None:
    file = tmp_path / "page.html"
    write_explorer(file, [hole._replace(title="</script><b>")])
    page = file.read_text(encoding="utf-8")
    assert "</script><b>" not in page
    assert r"\u003c/script>\u003cb>" in page


def test_of_a_failure_the_page_tells_the_first_line_without_a_traceback() -> None:
    failed = Failing("ViewIsPrefix", 'slot 4 after 3\nTraceback\n  File "/somewhere/view.py"')
    (broken,) = shown.judged({}, failed, "")
    assert broken.text == "slot 4 after 3"
