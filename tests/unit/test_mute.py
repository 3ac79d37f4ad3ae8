"""The rule of mute nodes, alone."""

import pytest

from bench.net import Departure, Hearing, report
from runs.faults import describe, injections
from runs.history import Op

KNOWN = ("n0", "n1", "lin-kv", "c7")
MS, SECOND = 1_000_000, 1_000_000_000
LATE = b'{"src":"n0","dest":"c3","body":{"type":"send_ok","offset":7,"in_reply_to":3}}'


def refused(hearing: Hearing, src: str, dest: str) -> None:
    hearing.refuse("n0", src, dest, LATE, known=KNOWN, now_ns=8 * SECOND)


def history_of(hearing: Hearing) -> list[Op]:
    return [
        Op(index, mute.time_ns, "info", "nemesis", "mute", mute.value)
        for index, mute in enumerate(hearing.mute.values())
    ]


@pytest.mark.parametrize(
    ("dest", "parts"),
    [
        ("c3", ["client c3, which had given up 0.312 s before", "within that time or not at all"]),
        ("n7", ["to n7, which is no node, service or client of this run", "`dest`"]),
    ],
)
def test_the_report_names_node_time_line_and_what_is_wrong(dest: str, parts: list[str]) -> None:
    hearing = Hearing()
    hearing.left("c3", Departure(8 * SECOND - 312 * MS))
    refused(hearing, "n0", dest)
    text = report(history_of(hearing))
    for part in (*parts, "Node n0 is mute from 8.000 s on", LATE.decode(), "--lenient"):
        assert part in text


def test_the_advice_for_several_nodes_is_given_once() -> None:
    hearing = Hearing()
    for node in ("n0", "n1"):
        hearing.refuse(node, node, "n7", LATE, known=KNOWN, now_ns=SECOND)
    text = report(history_of(hearing))
    assert (text.count("is mute from"), text.count("--lenient")) == (2, 1)
    assert report([]) == ""


def test_the_history_shows_a_mute_node_like_a_fault_until_it_is_heard() -> None:
    hearing = Hearing()
    for node in ("n0", "n1"):
        hearing.refuse(node, node, "c3", LATE, known=KNOWN, now_ns=SECOND)
    muted = [mute.value for mute in hearing.mute.values()]
    history = [
        Op(0, 1 * SECOND, "info", "nemesis", "mute", muted[0]),
        Op(1, 2 * SECOND, "info", "nemesis", "mute", muted[1]),
        Op(2, 3 * SECOND, "info", "nemesis", "heard", {"node": "n0"}),
        Op(3, 9 * SECOND, "invoke", 0, "poll", None),
    ]
    found = [(each.fault, each.start_ns, each.end_ns, each.ended) for each in injections(history)]
    assert found == [("mute", SECOND, 3 * SECOND, True), ("mute", 2 * SECOND, 9 * SECOND, False)]
    assert describe("mute", None, muted[0]) == (
        "n0 was mute (it sent a message to c3, which is no node, service or client of this run)"
    )


def test_the_text_of_the_fault_says_how_late_an_answer_was() -> None:
    hearing = Hearing()
    hearing.left("c3", Departure(8 * SECOND - 312 * MS))
    refused(hearing, "n0", "c3")
    assert describe("mute", None, hearing.mute["n0"].value) == (
        "n0 was mute (it sent a message to client c3, which had given up 0.312 s before)"
    )
