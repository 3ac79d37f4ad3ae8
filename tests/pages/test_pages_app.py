"""The pages of a store: list, run, comparison, sweep, logs and files; which sentences stand on which page."""

import html
import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from bench.pages import app
from bench.pages.listing import PAGE_BYTES
from runs.faults import FAULTS
from tests.pages.page_stores import (
    FIRST,
    REAL,
    SECOND,
    THIRD,
    client_of,
    listed,
    make_store,
    text_of,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def client(store: Path) -> FlaskClient:
    return client_of(store)


# What stands on a page, as patterns; what does not; how many wide pictures it has.
PAGES: dict[str, tuple[list[str], list[str], int]] = {
    "/": (["<thead>[^b]*<button[^>]*>run</button></th>[^b]*<button[^>]*>verdict<"], [], 0),
    "/?sweep=sweeps/small": (
        [
            *('id="compare".*<table', "<tr data-wrong>", r"badge invalid\W+invalid", "✘", "cas"),
            r"partition.*>46<.*>3\.636<.*>1 685<.*✘ marks",  # ops/s, msgs/op, p99
        ],
        [],
        0,
    ),
    "/?program=leaderless": ([FIRST], ["data-wrong"], 0),
    "/?verdict=invalid&q=skip": (['value="skip"', "<option selected>invalid</option>"], [], 0),
    f"/run/{THIRD}": (
        [
            r'<header>.*Invalid, <a href="#duplicate">duplicate</a>:</b> .*message 15 of key "9"',
            'id="anomalies".*<h3 id="duplicate".*<dt>workload',  # why comes before what was run
            r'message 15 of key "9" is at offsets 14, 16',
            "into the run, while the network was cut: minority-third.",  # as the verdict has it
            'key "9": message 15 at offset 14',
            "What <code>duplicate</code> means.</b> One message is at several offsets",
            f'src="/lamport/{THIRD}"',
            ">partition</text>",  # shaded, and named
            *("These counts equal the bench's own.", "minority-third", "node-logs/n0.log"),
            "history.jsonl",
        ],
        [],
        4,
    ),
    f"/run/{REAL}": (['message 15 of key "9" is at offsets 14, 16'], [], 4),
    "/run/latest": (  # a link inside the store
        ["Valid: the checker found nothing wrong."], ["What went wrong", "/lamport/"], 4
    ),
    f"/compare?run={FIRST}&run={SECOND}": (
        [
            r"rate\s+100\s+200\s",
            r"operations per second\s+\d\S*\s",
            r"server messages per operation\s+1\.796\s+5\.896\s+3\.28",
            r"anomalies: poll-skip\s+0\s+3\s+–",
        ],
        ["latency_ms"],  # it does not differ
        2,
    ),
    "/sweep/sweeps/small": (
        [
            r"1 invalid.*1 crashed.*<td[^>]*>leaderless<.*1 crashed.*✘</span> cas<.*1 invalid",
            *("not as expected", f'href="/run/{THIRD}"', "A program with an invalid run is marked"),
            "One message is at several offsets",  # what its anomaly means
        ],
        [],
        3,
    ),
    f"/timeline-page/{FIRST}": (["process 0"], [], 0),
}  # fmt: skip


@pytest.mark.parametrize("address", PAGES)
def test_what_stands_on_a_page(client: FlaskClient, address: str) -> None:
    there, absent, pictures = PAGES[address]
    page = text_of(client, address)
    bare = re.sub(r"<[^>]*>", " ", page) if address.startswith("/compare") else page
    assert [each for each in there if not re.search(each, bare, re.DOTALL)] == []
    assert [text for text in absent if text in page] == []
    assert page.count('class="plot"') == pictures


def changed(root: Path, name: str, /, **more: object) -> None:
    """Let a file of the first run have more fields."""
    file = root / FIRST / f"{name}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | more))


def test_a_run_on_a_real_store_shows_the_store_and_its_requests(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    assert "store requests per operation" not in text_of(client_of(store), f"/run/{FIRST}")
    changed(store, "test", store_server="etcd")
    changed(store, "results", store={"valid?": True, "server": "etcd", "requests-per-op": 0.75})
    page = text_of(client_of(store), f"/run/{FIRST}")
    assert re.search(r"<strong>0\.750</strong> <span[^>]*>store requests per operation", page)
    assert re.search(r"store</dt>\s*<dd>etcd", page)


def test_the_list_names_another_program_and_all_faults(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    changed(store, "test", bin="/home/me/my_node.py", args=[], nemesis=FAULTS)
    client = client_of(store)
    assert listed(client, "program=my_node.py") == [FIRST]
    for page in ("/?program=my_node.py", f"/run/{FIRST}"):
        shown = text_of(client, page)
        assert re.search(r"my_node\.py.*>all</(td|dd)>", shown, re.DOTALL)
        assert "partition, kill" not in shown
    assert listed(client, "fault=fence") == [FIRST]  # each of them is still found


def test_a_run_without_operations_has_no_empty_axes_and_no_dead_links(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for name in ("history.jsonl", "net-journal.jsonl"):
        (store / FIRST / name).write_text("")
    results = {"valid?": "unknown", "error": "Node n0 ended:\n  exit status 3"}
    (store / FIRST / "results.json").write_text(json.dumps(results))
    client = client_of(store)
    page = text_of(client, f"/run/{FIRST}")
    assert results["error"] in page
    assert not re.search("<svg|/timeline/", page)
    for link in re.findall(r'href="(/[^"]*)"', page):
        with client.get(link) as answer:
            assert answer.status_code == 200, link


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("program=prefetch", [SECOND]),
        ("program=leaderless", [FIRST]),
        ("verdict=valid", [FIRST]),
        ("verdict=invalid", [THIRD, SECOND, REAL]),
        ("fault=partition", [THIRD, REAL]),
        ("fault=none", [SECOND, FIRST]),
        ("sweep=sweeps/small", [THIRD]),
        ("workload=kafka", [THIRD, SECOND, FIRST]),
        ("q=poll-skip", [THIRD, SECOND, REAL]),
        ("q=SEED+11", [FIRST]),
        ("q=no+such+thing", []),
        ("verdict=invalid&program=cas", [THIRD]),
        ("verdict=&program=&q=+", [THIRD, SECOND, FIRST, REAL]),
    ],
)
def test_filters(client: FlaskClient, query: str, names: list[str]) -> None:
    assert listed(client, query) == names


def test_a_list_that_would_take_long_comes_in_parts(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    page = text_of(client_of(store, list_budget_s=0), "/")
    assert "Still reading 4 runs" in page
    assert 'http-equiv="refresh"' in page
    assert "Still reading" not in text_of(client_of(store), "/")


def test_an_empty_store_says_how_to_make_a_run(tmp_path: Path) -> None:
    assert "./maelstrom test -w kafka" in text_of(client_of(tmp_path), "/")


def test_the_diagram_of_the_first_anomaly_shows_its_messages(client: FlaskClient) -> None:
    answer = client.get(f"/lamport/{THIRD}")
    assert answer.mimetype == "image/svg+xml"
    assert "key=9 msg=15" in answer.text
    assert "fwd" in answer.text  # the node handed it over
    assert 'poll_ok msgs={"9":[[14,15]' in html.unescape(answer.text)
    assert "bold: the requests and answers that show the anomaly" in answer.text
    assert text_of(client, f"/lamport/{FIRST}", 404)


def test_timelines_show_the_anomalies_and_any_part(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "process 0" in text_of(client, f"/timeline-page/{FIRST}")
    index = re.search(rf'href="/timeline/{THIRD}\?at=(\d+)"', text_of(client, f"/run/{THIRD}"))
    assert index
    outer = text_of(client, f"/timeline/{THIRD}?at={index[1]}")
    assert f'src="/timeline-page/{THIRD}?from=0#op-{index[1]}"' in outer
    assert f'id="op-{index[1]}"' in text_of(client, f"/timeline-page/{THIRD}?from=0")
    assert "later</a>" not in outer  # it is all on one page
    monkeypatch.setattr(app, "PART", 100)
    later = text_of(client, f"/timeline/{THIRD}?from=200")
    assert 'href="?from=100" rel="prev">earlier</a>' in later
    assert 'href="?from=300" rel="next">later</a>' in later
    answer = client.get(f"/timeline-page/{THIRD}?from=200")
    assert f'id="op-{index[1]}"' in answer.text
    assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_the_timeline_of_the_bench_is_shown_where_the_history_is_too_large(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    (store / SECOND / "timeline.html").write_text("<p>the bench's own</p>")
    with (store / SECOND / "history.jsonl").open("wb") as file:
        file.truncate(500 * 2**20)
    client = client_of(store)
    assert f'src="/timeline-page/{SECOND}' in text_of(client, f"/timeline/{SECOND}")
    answer = client.get(f"/timeline-page/{SECOND}")
    assert answer.text == "<p>the bench's own</p>"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    answer.close()


def test_two_workloads_are_not_compared(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    changed(store, "test", workload="echo")
    page = text_of(client_of(store), f"/compare?run={FIRST}&run={SECOND}")
    assert "These runs have different workloads, so their figures are not compared." in page
    assert not re.search('<svg|id="figures"', page)


@pytest.mark.parametrize("query", ["", f"run={FIRST}", "run=a&run=b&run=c"])
def test_comparing_needs_two(client: FlaskClient, query: str) -> None:
    assert "Choose two runs" in text_of(client, f"/compare?{query}", 400)


def test_logs_come_in_pages(client: FlaskClient, store: Path) -> None:
    lines = [f"line {number:06d}" for number in range(30_000)]
    (store / SECOND / "node-logs" / "n0.log").write_text("\n".join(lines) + "\n")
    address = f"/log/{SECOND}/node-logs/n0.log"
    first = text_of(client, address)
    pages = int(re.search(r"page 1 of (\d+)", first)[1])  # type: ignore[index]
    assert pages == -(-30_000 * 12 // PAGE_BYTES)
    found = []
    for page in range(1, pages + 1):
        found += re.findall(r"line \d+", text_of(client, f"{address}?page={page}"))
    assert found == lines
    assert text_of(client, f"{address}?page={pages + 1}", 404)
    assert text_of(client, f"{address}?page=0", 404)


def test_a_huge_log_is_not_read_whole(client: FlaskClient, store: Path) -> None:
    with (store / SECOND / "node-logs" / "n1.log").open("wb") as file:
        file.truncate(500 * 2**20)
    answer = client.get(f"/log/{SECOND}/node-logs/n1.log?page=7")
    assert answer.status_code == 200
    assert len(answer.data) < 3 * PAGE_BYTES
    assert "500 MB" not in text_of(client, f"/run/{SECOND}")  # it is 524


def test_files_are_served_as_they_are(client: FlaskClient, store: Path) -> None:
    answer = client.get(f"/file/{FIRST}/test.json")
    assert answer.data == (store / FIRST / "test.json").read_bytes()
    assert answer.mimetype == "text/plain"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    answer.close()
    part = client.get(f"/file/{FIRST}/test.json", headers={"Range": "bytes=0-3"})
    assert (part.status_code, len(part.data)) == (206, 4)
    part.close()


def test_a_missing_page_says_so_kindly(client: FlaskClient) -> None:
    page = text_of(client, "/nothing/here", 404)
    assert re.search(
        "There is no such page.*All runs|All runs.*There is no such page", page, re.DOTALL
    )
    assert text_of(client, "/sweep/kafka", 404)
    assert "kafka/gone" in text_of(client, "/run/kafka/gone", 404)
    assert client.post("/").status_code == 405
