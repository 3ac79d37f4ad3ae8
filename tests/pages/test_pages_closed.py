"""What the pages never show: files outside the store, or markup in a name. Only this machine is answered."""

import json
import os
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.pages.asking import client_of, listed, text_of
from tests.pages.page_stores import FIRST, make_store

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
