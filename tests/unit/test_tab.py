"""What stands in a browser tab for libraries that are not Python answers as these do."""

from random import Random
from typing import Any

import orjson
import pytest
import rustworkx

from simulation.stand_ins import orjson as own_orjson
from simulation.stand_ins import rustworkx as own_rustworkx


def told(library: Any, edges: list[tuple[int, int, float]]) -> Any:
    """The components of a graph, and what it says of each vertex."""
    graph = library.PyDiGraph()
    graph.extend_from_weighted_edge_list(edges)
    return sorted(map(sorted, library.strongly_connected_components(graph))), [
        (
            list(graph.in_edges(vertex)),
            list(graph.successor_indices(vertex)),
            dict(library.dijkstra_shortest_path_lengths(graph, vertex, float)),
        )
        for vertex in range(len(graph))
    ]


@pytest.mark.parametrize("size", range(1, 40))
def test_graphs_are_those_of_rustworkx(size: int) -> None:
    draw = Random(size).randrange
    for count in range(2, 13):
        edges = [(draw(count), draw(count), float(draw(3))) for _ in range(size)]
        assert told(own_rustworkx, edges) == told(rustworkx, edges)


@pytest.mark.parametrize(
    "text",
    [
        '{"b":[1,null,true],"a":"ä\u2028\\n\\""}',
        b"[0.1,-1.5]",
        "9007199254740992",
        "9" * 30,
        '"\\ud83d\\ude00"',
    ],
)
def test_json_is_that_of_orjson(text: str | bytes) -> None:
    value = orjson.loads(text)
    assert own_orjson.loads(text) == value
    for option in (0, orjson.OPT_SORT_KEYS) if len(text) < 30 else ():
        assert own_orjson.dumps(value, None, option) == orjson.dumps(value, None, option)


@pytest.mark.parametrize("library", [orjson, own_orjson])
@pytest.mark.parametrize(
    "asked", ["NaN", "[1,]", "", '"\x01"', b"\xff", '"\\ud800"', {1, 2}, 1j, ["\ud800"]]
)
def test_what_is_no_json_is_refused_alike(library: Any, asked: Any) -> None:
    is_text = isinstance(asked, str | bytes)
    with pytest.raises(library.JSONDecodeError if is_text else TypeError):
        (library.loads if is_text else library.dumps)(asked)
