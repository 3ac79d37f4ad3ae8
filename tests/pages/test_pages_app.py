"""The pages of a store: list, run, comparison, sweep, logs and files."""

import html
import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from bench.pages import app
from bench.pages.run_page import PAGE_BYTES
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


def test_the_list_has_each_run_once_newest_first(client: FlaskClient) -> None:
    assert listed(client) == [THIRD, SECOND, FIRST, REAL]


def test_a_run_on_a_real_store_shows_the_store_and_its_requests(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    assert "store requests per operation" not in text_of(client_of(store), f"/run/{FIRST}")
    options, results = (store / FIRST / name for name in ("test.json", "results.json"))
    options.write_text(json.dumps(json.loads(options.read_text()) | {"store_server": "etcd"}))
    of_store = {"valid?": True, "server": "etcd", "requests-per-op": 0.75}
    results.write_text(json.dumps(json.loads(results.read_text()) | {"store": of_store}))
    page = text_of(client_of(store), f"/run/{FIRST}")
    assert re.search(r"<strong>0\.750</strong> <span[^>]*>store requests per operation", page)
    assert re.search(r"store</dt>\s*<dd>etcd", page)


def columns(page: str) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*><button type="button">([^<]*)<', page)


def test_the_verdict_is_the_second_column(client: FlaskClient) -> None:
    assert columns(text_of(client, "/"))[:2] == ["run", "verdict"]


def test_the_list_names_another_program_and_all_faults(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    options = store / FIRST / "test.json"
    asked = json.loads(options.read_text()) | {"bin": "/home/me/my_node.py", "args": []}
    options.write_text(json.dumps(asked | {"nemesis": FAULTS}))
    client = client_of(store)
    assert listed(client, "program=my_node.py") == [FIRST]
    for page in ("/?program=my_node.py", f"/run/{FIRST}"):
        shown = text_of(client, page)
        assert "my_node.py" in shown
        assert re.search(r">all</(td|dd)>", shown)
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
    assert "Node n0 ended:\n  exit status 3" in page
    assert "<svg" not in page
    assert "/timeline/" not in page
    for link in re.findall(r'href="(/[^"]*)"', page):
        with client.get(link) as answer:
            assert answer.status_code == 200, link


def test_the_list_shows_what_runs_were_and_cost(client: FlaskClient) -> None:
    page = text_of(client, "/?sweep=sweeps/small")
    row = re.sub(r"<[^>]*>|\s+", " ", page[page.index("<tbody>") : page.index("</tbody>")])
    assert "cas" in row
    assert "partition" in row
    assert "invalid" in row
    assert "3.636" in row  # server messages an operation
    assert "1 685" in row  # p99 of send, ms
    assert re.search(r"\b46\s+3\.636\b", row)  # operations a second, before it
    assert page.index('id="compare"') < page.index("<table")


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


def test_what_is_chosen_stays_chosen(client: FlaskClient) -> None:
    page = text_of(client, "/?verdict=invalid&q=skip")
    assert "<option selected>invalid</option>" in page
    assert 'value="skip"' in page


def test_a_list_that_would_take_long_comes_in_parts(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    page = text_of(client_of(store, list_budget_s=0), "/")
    assert "Still reading 4 runs" in page
    assert 'http-equiv="refresh"' in page
    assert "Still reading" not in text_of(client_of(store), "/")


def test_an_empty_store_says_how_to_make_a_run(tmp_path: Path) -> None:
    assert "./maelstrom test -w kafka" in text_of(client_of(tmp_path), "/")


def test_the_page_of_an_invalid_run_tells_its_anomalies(client: FlaskClient) -> None:
    page = text_of(client, f"/run/{THIRD}")
    assert 'message 15 of key "9" is at offsets 14, 16' in page
    header = page[page.index("<header>") : page.index("</header>")]
    assert re.search(
        r'Invalid, <a href="#duplicate">duplicate</a>:</b> .*message 15 of key "9"', header
    )
    assert '<h3 id="duplicate"' in page
    assert "What <code>duplicate</code> means.</b> One message is at several offsets" in page
    assert page.index('id="anomalies"') < page.index("<dt>workload")  # why, before what was run
    # As the verdict has it.
    assert "into the run, while the network was cut: minority-third." in page
    assert 'key "9": message 15 at offset 14' in page
    assert "These counts equal the bench's own." in page
    assert page.count('class="plot"') == 4
    assert ">partition</text>" in page  # shaded, and named
    assert f'src="/lamport/{THIRD}"' in page
    for name in ("minority-third", "node-logs/n0.log", "history.jsonl"):
        assert name in page


def test_a_store_of_the_real_tool_has_the_same_page(client: FlaskClient) -> None:
    page = text_of(client, f"/run/{REAL}")
    assert 'message 15 of key "9" is at offsets 14, 16' in page
    assert page.count('class="plot"') == 4


def test_a_valid_run_has_no_anomalies(client: FlaskClient) -> None:
    page = text_of(client, "/run/latest")  # a link inside the store
    assert "Valid: the checker found nothing wrong." in page
    assert "What went wrong" not in page
    assert "/lamport/" not in page


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


def test_two_runs_compared(client: FlaskClient) -> None:
    page = text_of(client, f"/compare?run={FIRST}&run={SECOND}")
    rows = [
        re.sub(r"<[^>]*>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    ]
    assert ["rate", "100", "200"] in rows
    (messages,) = (row for row in rows if row[:4] == ["server", "messages", "per", "operation"])
    assert messages[4:] == ["1.796", "5.896", "3.28"]
    assert ["anomalies:", "poll-skip", "0", "3", "–"] in rows
    assert any(row[:3] == ["operations", "per", "second"] and float(row[3]) > 0 for row in rows)
    assert page.count('class="plot"') == 2
    assert "latency_ms" not in page  # it does not differ


def test_two_workloads_are_not_compared(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    options = store / FIRST / "test.json"
    options.write_text(json.dumps(json.loads(options.read_text()) | {"workload": "echo"}))
    page = text_of(client_of(store), f"/compare?run={FIRST}&run={SECOND}")
    assert "These runs have different workloads, so their figures are not compared." in page
    assert "<svg" not in page
    assert 'id="figures"' not in page


@pytest.mark.parametrize("query", ["", f"run={FIRST}", "run=a&run=b&run=c"])
def test_comparing_needs_two(client: FlaskClient, query: str) -> None:
    assert "Choose two runs" in text_of(client, f"/compare?{query}", 400)


def test_the_page_of_a_sweep(client: FlaskClient) -> None:
    page = text_of(client, "/sweep/sweeps/small")
    assert "1 invalid" in page
    assert "1 crashed" in page
    assert f'href="/run/{THIRD}"' in page
    assert "not as expected" in page
    assert "One message is at several offsets" in page  # what its anomaly means
    assert page.count('class="plot"') == 3
    assert text_of(client, "/sweep/kafka", 404)


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
    assert "There is no such page" in page
    assert "All runs" in page
    assert "kafka/gone" in text_of(client, "/run/kafka/gone", 404)
    assert client.post("/").status_code == 405
