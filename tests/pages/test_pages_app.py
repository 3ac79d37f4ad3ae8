"""The pages of a store, asked for as a browser does."""

import gzip
import html
import json
import math
import os
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from pages.app import create_app
from pages.cache import Cache
from pages.library import Library
from pages.logs import PAGE_BYTES
from runs.faults import FAULTS
from runs.figures import keep_figures
from runs.store import Store
from tests.pages.page_stores import FIRST, REAL, SECOND, THIRD, age, make_store

NOW_S = 2e9


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def client(store: Path) -> FlaskClient:
    return client_of(store)


def client_of(store: Path, now_s: float = NOW_S, list_budget_s: float = math.inf) -> FlaskClient:
    """Its list is complete at once, however slow the machine, unless it has a budget."""
    library = Library(Store(store), Cache(store / ".cache"), clock=lambda: now_s)
    return create_app(library, list_budget_s).test_client()


def text_of(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


def listed(client: FlaskClient, query: str = "") -> list[str]:
    """Names of the runs in the list, in its order."""
    return re.findall(r'name="run" value="([^"]*)"', text_of(client, f"/?{query}"))


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
    assert listed(client, "strategy=my_node.py") == [FIRST]
    for page in ("/?strategy=my_node.py", f"/run/{FIRST}"):
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


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("strategy=prefetch", [SECOND]),
        ("strategy=leaderless", [FIRST]),
        ("verdict=valid", [FIRST]),
        ("verdict=invalid", [THIRD, SECOND, REAL]),
        ("fault=partition", [THIRD, REAL]),
        ("fault=none", [SECOND, FIRST]),
        ("sweep=sweeps/small", [THIRD]),
        ("workload=kafka", [THIRD, SECOND, FIRST]),
        ("q=poll-skip", [THIRD, SECOND, REAL]),
        ("q=SEED+11", [FIRST]),
        ("q=no+such+thing", []),
        ("verdict=invalid&strategy=cas", [THIRD]),
        ("verdict=&strategy=&q=+", [THIRD, SECOND, FIRST, REAL]),
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
    assert "Invalid: the run shows what it must not." in page
    assert (
        "into the run, while the network was cut: minority-third." in page
    )  # as the verdict has it
    assert 'key "9": message 15 at offset 14' in page
    assert "These counts equal the bench's own." in page
    assert page.count("<svg") == 4
    assert ">partition</text>" in page  # shaded, and named
    assert f'src="/lamport/{THIRD}"' in page
    for name in ("minority-third", "node-logs/n0.log", "history.jsonl"):
        assert name in page


def test_a_store_of_the_real_tool_has_the_same_page(client: FlaskClient) -> None:
    page = text_of(client, f"/run/{REAL}")
    assert 'message 15 of key "9" is at offsets 14, 16' in page
    assert page.count("<svg") == 4


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


def test_timelines_are_drawn_where_a_run_has_none(client: FlaskClient, store: Path) -> None:
    assert f'src="/timeline-page/{FIRST}"' in text_of(client, f"/timeline/{FIRST}")
    assert "process 0" in text_of(client, f"/timeline-page/{FIRST}")
    (store / SECOND / "timeline.html").write_text("<p>the bench's own</p>")
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
    assert page.count("<svg") == 2
    assert "latency_ms" not in page  # it does not differ


@pytest.mark.parametrize("query", ["", f"run={FIRST}", "run=a&run=b&run=c"])
def test_comparing_needs_two(client: FlaskClient, query: str) -> None:
    assert "Choose two runs" in text_of(client, f"/compare?{query}", 400)


def test_the_page_of_a_sweep(client: FlaskClient) -> None:
    page = text_of(client, "/sweep/sweeps/small")
    assert "1 invalid" in page
    assert "1 crashed" in page
    assert f'href="/run/{THIRD}"' in page
    assert "not as expected" in page
    assert page.count("<svg") == 3
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


OUTSIDE = [
    "../secret.txt",
    "kafka/../../secret.txt",
    "%2e%2e/secret.txt",
    "..%2fsecret.txt",
    "..%5csecret.txt",
    "%252e%252e/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    f"{FIRST}/link-out.txt",
    f"{FIRST}/folder-out/secret.txt",
    f"{FIRST}/../../../secret.txt",
    f"{FIRST}/test.json%00.txt",
    f"{FIRST}/pipe",
    f"{FIRST}/node-logs",
    f"{FIRST}/.hidden.txt",
    "notes.txt",  # inside, but of no run
    "sweeps/small/index.jsonl",
    ".cache",
    "loop",
    "x" * 5000,
]


PREFIXES = ("file", "log", "run", "timeline", "timeline-page", "lamport", "sweep")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A store with a secret beside it, and with everything that could lead there."""
    around = tmp_path_factory.mktemp("guarded")
    store = around / "results"
    run = store / FIRST
    run.mkdir(parents=True)
    (run / "test.json").write_text("{}")
    (run / ".hidden.txt").write_text("SECRET")
    (around / "secret.txt").write_text("SECRET")
    (store / "notes.txt").write_text("SECRET")
    (run / "link-out.txt").symlink_to(around / "secret.txt")
    (run / "folder-out").symlink_to(around, target_is_directory=True)
    (store / "loop").symlink_to("loop")
    os.mkfifo(run / "pipe")
    return client_of(store)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_else_is_served(guarded: FlaskClient, prefix: str, name: str) -> None:
    answer = guarded.get(f"/{prefix}/{name}", follow_redirects=True)
    assert answer.status_code == 404
    assert "SECRET" not in answer.text
    assert "root:" not in answer.text


def test_a_run_that_is_a_link_out_of_the_store_is_not_shown(tmp_path: Path) -> None:
    other = make_store(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run").symlink_to(other / FIRST)
    client = client_of(tmp_path / "mine")
    assert listed(client) == []
    assert text_of(client, "/run/run", 404)


def test_a_missing_page_says_so_kindly(client: FlaskClient) -> None:
    page = text_of(client, "/nothing/here", 404)
    assert "There is no such page" in page
    assert "All runs" in page
    assert "kafka/gone" in text_of(client, "/run/kafka/gone", 404)
    assert client.post("/").status_code == 405


def test_only_this_machine_is_answered(client: FlaskClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/", headers={"Host": "127.0.0.1:8080"}).status_code == 200


def test_names_cannot_break_out_of_a_page(tmp_path: Path) -> None:
    name = '"><script>alert(1)</script>'
    folder = tmp_path / "kafka" / "<b>&20260101T000000.000"
    folder.mkdir(parents=True)
    (folder / "test.json").write_text(json.dumps({"workload": name, "args": ["--strategy", name]}))
    client = client_of(tmp_path)
    (href,) = re.findall(r'href="(/run/[^"]*)"', client.get("/").text)
    for address in ("/", href, f"/?q={name}", f"/run/{name}"):
        page = client.get(address).text
        assert "<script>alert" not in page
        assert "<b>&" not in page


@pytest.mark.parametrize("age_s", [5, 3600])
def test_a_run_without_results_is_running_or_incomplete(tmp_path: Path, age_s: float) -> None:
    store = make_store(tmp_path)
    run = store / FIRST
    (run / "results.json").unlink()
    with (run / "history.jsonl").open("a") as file:
        file.write('{"index": 99999, "ti')  # being written
    age(run)
    client = client_of(store, now_s=age_s)
    page = text_of(client, f"/run/{FIRST}")
    word = "Running" if age_s < 60 else "Incomplete"
    assert f"{word}: " in page
    assert page.count("<svg") == 4
    assert FIRST in listed(client, f"verdict={word.lower()}")


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    (tmp_path / FIRST / "test.json").write_text('{"workload": "ka')
    page = text_of(client_of(tmp_path), f"/run/{FIRST}")
    assert "test.json cannot be read" in page or "There is no history" in page
    assert "missing, damaged, or too large" in text_of(client_of(tmp_path), f"/timeline/{FIRST}")


@pytest.mark.parametrize(
    ("error", "verdict"),
    [("Node n1 exited with status 1.", "crashed"), ("The run was stopped by Ctrl-C.", "unknown")],
)
def test_a_run_that_ended_early_says_why(tmp_path: Path, error: str, verdict: str) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    content = {"valid?": "unknown", "error": error, "workload": {"valid?": True}}
    (tmp_path / FIRST / "results.json").write_text(json.dumps(content))
    client = client_of(tmp_path)
    assert listed(client, f"verdict={verdict}") == [FIRST]
    assert error in text_of(client, f"/run/{FIRST}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("results.json", "[]"),
        ("results.json", '{"valid?": fal'),
        ("results.edn", "{:valid? "),
        ("results.json", '{"valid?": null, "workload": 3, "net": [], "stats": "x"}'),
        ("results.json", '{"workload": {"error-types": ["G0"], "G0": 4}}'),
        ("history.jsonl", "\x00\x01"),
        ("history.edn", "{:index"),
        ("net-journal.jsonl", '{"time": 1, "type": "send", "message": {"id": 1}}\n'),
        ("history.jsonl", '{"index":0,"time":"x","type":"invoke","process":0,"f":"send"}\n'),
    ],
)
def test_damaged_files_do_not_break_pages(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    (tmp_path / FIRST / name).write_text(content)
    client = client_of(tmp_path)
    assert listed(client) == [FIRST]
    text_of(client, f"/run/{FIRST}")
    text_of(client, f"/timeline/{FIRST}")


def test_a_huge_run_is_shown_from_what_is_small(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for name in ("history.jsonl", "net-journal.jsonl.gz"):
        with (store / THIRD / name).open("wb") as file:
            file.truncate(500 * 2**20)
    client = client_of(store)
    page = text_of(client, f"/run/{THIRD}")
    assert "history.jsonl is larger than" in page
    assert "the anomalies are counted here, but not told" in page
    assert "24 found" in page  # duplicates, from the results
    assert "3.636" in page
    assert "too large to draw" in text_of(client, f"/timeline/{THIRD}")


def test_results_that_are_too_large_still_tell_the_verdict(tmp_path: Path) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    with (tmp_path / FIRST / "results.edn").open("wb") as file:
        file.truncate(5 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"},\n :valid? false}\n")
    page = text_of(client_of(tmp_path), f"/run/{FIRST}")
    assert "Invalid: " in page
    assert "too large to be read" in page


def test_figures_of_spark_are_shown_where_the_files_are_too_large(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    library = Library(Store(store))
    figures = library.figures(Store(store).run(FIRST))  # type: ignore[arg-type]
    with (store / FIRST / "history.jsonl").open("wb") as file:
        file.truncate(500 * 2**20)
    run = Store(store).run(FIRST)
    assert run
    keep_figures(run, figures)
    assert library.figures(run) == figures
    (store / FIRST / "history.jsonl").write_text("")
    assert library.figures(run) != figures  # the files changed


def test_values_are_computed_once_and_again_when_files_change(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    run = Store(store).run(FIRST)
    assert run
    calls: list[int] = []
    for _ in range(2):  # as after a restart
        cache = Cache(store / ".cache")
        for _ in range(2):
            cache.get_or(run, "thing", lambda: calls.append(1) or {"a": 1})
    assert len(calls) == 1
    (run.path / "history.jsonl").write_text("")
    Cache(store / ".cache").get_or(run, "thing", lambda: calls.append(1) or {"a": 1})
    assert len(calls) == 2


def test_a_store_that_cannot_be_written_is_shown_too(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    (store / ".cache").write_text("a file where the folder should be")
    run = Store(store).run(FIRST)
    assert run
    cache = Cache(store / ".cache")
    calls: list[int] = []
    for _ in range(2):
        assert cache.get_or(run, "thing", lambda: calls.append(1) or {"a": 1}) == {"a": 1}
    assert len(calls) == 1
    assert FIRST in listed(client_of(store))


def test_a_gzipped_history_is_explained(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    history = store / SECOND / "history.jsonl"
    history.with_suffix(".jsonl.gz").write_bytes(gzip.compress(history.read_bytes()))
    history.unlink()
    assert "polled key" in text_of(client_of(store), f"/run/{SECOND}")
