"""The files of a page in a browser tab; what stands there for libraries that are not Python answers alike."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import click
import orjson
import pytest
import rustworkx

from bench.pages.app import create_app
from bench.pages.facts import Shelf
from bench.pages.tab import NEEDED, write_tab
from runs.store import Store

own_orjson: Any = import_module("simulation.stand_ins.orjson")
POLICY = "Content-Security-Policy"
own_rustworkx: Any = import_module("simulation.stand_ins.rustworkx")


@pytest.mark.parametrize("seed", range(60))
def test_graphs_are_those_of_rustworkx(seed: int) -> None:
    random, graphs = Random(seed), []
    count = random.randint(1, 12)
    edges = [
        (random.randrange(count), random.randrange(count), float(random.randrange(3)))
        for _ in range(random.randint(1, 30))
    ]
    for library in (rustworkx, own_rustworkx):
        graph: Any = library.PyDiGraph()
        graph.extend_from_weighted_edge_list(edges)
        found = library.strongly_connected_components(graph)
        of_each = [
            (
                list(graph.in_edges(vertex)),
                list(graph.successor_indices(vertex)),
                dict(library.dijkstra_shortest_path_lengths(graph, vertex, float)),
            )
            for vertex in range(len(graph))
        ]
        graphs.append((sorted(map(sorted, found)), of_each))
    assert graphs[0] == graphs[1]


VALUES = [{"b": [1, None, True], "a": "ä\u2028\n"}, 2**53, 0.1, "", (1, 2), {1, 2}, 1j, "\ud800"]
TEXTS = ['{"a": [1, 2.50, "\\u00e4"]}', b"[]", "NaN", "[1,]", "", '"\x01"', b"\xff", '"\\ud800"']
TEXTS += ["9" * 30, "-9223372036854775808", '"\\ud83d\\ude00"']  # fmt: skip


def outcome(do: Callable[..., Any], *args: Any) -> Any:
    """What it gives; for an error, which of Python's it is."""
    try:
        return do(*args)
    except (TypeError, ValueError) as error:
        return isinstance(error, TypeError)


@pytest.mark.parametrize("option", [0, orjson.OPT_SORT_KEYS, orjson.OPT_APPEND_NEWLINE])
def test_json_is_that_of_orjson(option: int) -> None:
    for value in VALUES:
        theirs, own = (outcome(each.dumps, value, None, option) for each in (orjson, own_orjson))
        assert own == theirs, value
    for text in TEXTS:
        assert outcome(own_orjson.loads, text) == outcome(orjson.loads, text), text


def test_the_page_is_served_and_nothing_beside_it(tmp_path: Path) -> None:
    for name in NEEDED:
        (tmp_path / name).touch()
    write_tab(tmp_path / "store/tab", tmp_path)
    (tmp_path / "store/tab/other").touch()
    client, answers = create_app(Shelf(Store(tmp_path / "store"))).test_client(), []
    for address in ("/tab/", "/tab/bench.zip", "/tab/other", "/tab/../../pyodide.mjs", "/"):
        with client.get(address) as answer:
            answers.append((answer.status_code, answer.headers[POLICY], answer.data))
    assert [status for status, _, _ in answers] == [200, 200, 404, 404, 200]
    assert "connect-src http://localhost/tab/;" in answers[0][1]
    assert b"A bench in a browser tab" in answers[-1][2]


def test_a_folder_without_pyodide_is_refused_with_what_brings_it(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"has no pyodide.mjs. .*npm pack pyodide@"):
        write_tab(tmp_path / "tab", tmp_path)
