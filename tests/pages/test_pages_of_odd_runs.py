"""Pages of runs that are not over, damaged or too large; and what no page ever shows."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.pages.page_stores import (
    FIRST,
    SECOND,
    THIRD,
    age,
    client_of,
    listed,
    make_store,
    text_of,
)


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
    assert page.count('class="plot"') == 4
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
    assert "History and journal are larger than the 256 MiB" in page
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


def test_figures_and_findings_stand_in_the_folder_until_files_change(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    text_of(client_of(store), f"/run/{SECOND}")
    file = store / SECOND / "findings.json"
    kept = json.loads(file.read_text())
    kept["found"][0]["sentence"] = "As it was told."
    file.write_text(json.dumps(kept))
    assert "As it was told." in text_of(client_of(store), f"/run/{SECOND}")
    with (store / SECOND / "history.jsonl").open("a") as history:
        history.write("\n")
    assert "As it was told." not in text_of(client_of(store), f"/run/{SECOND}")


def test_a_store_that_cannot_be_written_is_shown_too(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for name in ("figures.json", "findings.json"):
        (store / SECOND / name).mkdir()
    client = client_of(store)
    assert listed(client)[1] == SECOND
    assert "polled key" in text_of(client, f"/run/{SECOND}")


def test_a_gzipped_history_is_explained(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    history = store / SECOND / "history.jsonl"
    history.with_suffix(".jsonl.gz").write_bytes(gzip.compress(history.read_bytes()))
    history.unlink()
    assert "polled key" in text_of(client_of(store), f"/run/{SECOND}")


# ---------------------------------------------------------------- what pages never show


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


def test_only_this_machine_is_answered(guarded: FlaskClient) -> None:
    assert guarded.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert guarded.get("/", headers={"Host": "127.0.0.1:8080"}).status_code == 200


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
