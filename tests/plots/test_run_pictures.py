"""Pictures of a run: what they say, that they escape it, and that they never raise.

`tests/datadriven/files_of_a_run/timeline.txt` has what is in a timeline.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from runs.history import NEMESIS, Op
from runs.plots.lamport import Bold, first_messages, lamport_svg
from runs.plots.run import draw_all
from tests.checker.history_language import timed

SVG = "{http://www.w3.org/2000/svg}"


RUN = timed(
    (0.0, "info", NEMESIS, "start-partition", "majority"),
    (0.1, "invoke", 0, "send", [["send", "50", 1]]),
    (0.2, "invoke", 1, "poll", [["poll"]]),
    (0.3, "ok", 0, "send", [["send", "50", [0, 1]]]),
    (0.4, "fail", 1, "poll", [["poll"]]),
    (0.5, "info", NEMESIS, "stop-partition", None),
    (0.6, "invoke", 0, "send", [["send", "<b>&", 2]]),
    (0.7, "info", 0, "send", [["send", "<b>&", 2]]),
    (0.8, "invoke", 2, "crash", None),
)


def message(number: int, src: str, dest: str, **body: int | list[int] | str) -> dict[str, Any]:
    return {"id": number, "src": src, "dest": dest, "body": body}


def event(kind: str, time_ms: int, sent: dict[str, Any]) -> dict[str, Any]:
    return {"id": 0, "time": int(time_ms * 1e6), "type": kind, "message": sent}


SEND = message(2, "c1", "n0", type="send", key="<k>", msg=7)
LOST = message(3, "n0", "n1", type="gossip", entries=[1, 2])
INIT = message(0, "c0", "n0", type="init", node_id="n0")
JOURNAL = [
    event("send", 0, INIT),
    event("recv", 1, INIT),
    event("send", 5, SEND),
    event("send", 6, LOST),
    event("recv", 7, SEND),
]


@pytest.mark.parametrize("history", [RUN, []], ids=["a run", "nothing"])
def test_everything_is_drawn(tmp_path: Path, history: list[Op]) -> None:
    lines = "\n".join(json.dumps(each) for each in JOURNAL if history).encode()
    (tmp_path / "net-journal.jsonl.gz").write_bytes(gzip.compress(lines))
    drawn = draw_all(tmp_path, history, {"workload": "kafka"})
    assert drawn == {name: tmp_path / name for name in drawn}
    begins = {".png": b"\x89PNG", ".html": b"<!doctype html>", ".svg": b"<svg"}
    starts = {name: (tmp_path / name).read_bytes() for name in drawn}
    assert all(data.startswith(begins[Path(name).suffix]) for name, data in starts.items())


def test_what_cannot_be_drawn_is_told_and_not_raised(tmp_path: Path) -> None:
    drawn = draw_all(tmp_path, [], {})
    assert isinstance(drawn["lamport.svg"], FileNotFoundError)
    assert drawn["rate.png"] == tmp_path / "rate.png"


def test_initialisation_is_no_part_of_the_first_messages() -> None:
    assert first_messages(JOURNAL) == JOURNAL[2:]
    assert first_messages(JOURNAL, limit=1) == [JOURNAL[2], JOURNAL[4]]


def test_the_lamport_diagram_shows_lifelines_arrows_and_losses() -> None:
    tree = ElementTree.fromstring(
        lamport_svg(JOURNAL[2:], "A & B", Bold("of the anomaly", {3: None}))
    )
    groups = {g.get("id"): g for g in tree.iter(f"{SVG}g") if g.get("id")}
    assert groups["message-2"].get("class") == "message client"
    assert groups["message-3"].get("class") == "message lost highlight"
    assert "(lost)" in (groups["message-3"].findtext(f"{SVG}title") or "")
    texts = [text.text for text in tree.iter(f"{SVG}text")]
    assert [name for name in texts if name in ("c1", "n0", "n1")] == ["c1", "n0", "n1"]
    assert "send key=<k> msg=7" in texts
    assert "bold: of the anomaly" in texts
    assert tree.findtext(f"{SVG}desc") == "2 messages between 3 parties, 1 of them lost"


def test_services_are_the_last_columns_and_clients_stand_beside_their_node() -> None:
    sent = [
        message(1, "c9", "n10", type="poll"),
        message(2, "n2", "lin-kv", type="read"),
        message(3, "c10", "n2", type="poll"),
    ]
    svg = lamport_svg([event("send", i, each) for i, each in enumerate(sent)], "order")
    assert re.findall(r'class="party"[^>]*>([^<]+)<', svg) == ["c10", "n2", "c9", "n10", "lin-kv"]


def test_a_message_may_hold_what_no_document_may() -> None:
    sent = message(1, "c1", "n0", type="echo", echo="\x00\ud800\uffff")
    ElementTree.fromstring(lamport_svg([event("send", 0, sent)], "odd").encode())


def test_a_message_that_comes_twice_has_two_arrows() -> None:
    def arrows(events: list[dict[str, Any]]) -> list[Element]:
        return ElementTree.fromstring(lamport_svg(events, "")).findall(f".//{SVG}path[@marker-end]")

    once = JOURNAL[2:]
    assert len(arrows([*once, event("recv", 9, SEND)])) == len(arrows(once)) + 1
