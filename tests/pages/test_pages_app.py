"""The pages of a store: what stands on each, of odd runs, of every workload; see `tests/datadriven/pages`."""

import html
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

import workloads
from bench.commands.check import check
from bench.pages.app import create_app
from bench.pages.facts import Shelf
from bench.pages.render import meaning
from bench.verdict import glossary, kept
from bench.verdict.wording import readable
from runs import edn
from runs.plots.picture import Picture
from runs.plots.run import draw_all
from runs.store import Store
from tests.pages.page_stores import (
    FIRST,
    REAL,
    SECOND,
    THIRD,
    client_of,
    listed,
    make_store,
    not_drawn,
    text_of,
)
from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun, judged


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
            r"partition.*>46<.*>3\.636<.*>1\xa0685<.*✘ marks",  # ops/s, msgs/op, p99
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
            *("Server messages by type.", "minority-third", "node-logs/n0.log"),
            "history.jsonl",
        ],
        [],
        3,
    ),
    f"/run/{REAL}": (['message 15 of key "9" is at offsets 14, 16'], [], 3),
    "/run/latest": (  # a link inside the store
        ["Valid: the checker found nothing wrong."], ["What went wrong", "/lamport/"], 3
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
# Their pictures are counted alone; those of another run and of the sweep are drawn.
UNDRAWN = (f"/run/{REAL}", "/run/latest")


@pytest.mark.parametrize("address", PAGES)
def test_what_stands_on_a_page(
    client: FlaskClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, absent, pictures = PAGES[address]
    if address in UNDRAWN:
        monkeypatch.setattr(Picture, "svg_document", not_drawn)
    page = text_of(client, address)
    bare = re.sub(r"<[^>]*>", " ", page) if address.startswith("/compare") else page
    assert [each for each in there if not re.search(each, bare, re.DOTALL)] == []
    assert [text for text in absent if text in page] == []
    assert page.count('class="plot"') == pictures
    assert not re.search(r'role="img"(?! aria-label="[^"]|[^>]* aria-labelledby=)', page)


def test_files_are_served_as_they_are(client: FlaskClient, store: Path) -> None:
    address, first = f"/file/{FIRST}/test.json", {"Range": "bytes=0-3"}
    with client.get(address) as answer, client.get(address, headers=first) as part:
        assert answer.data == (store / FIRST / "test.json").read_bytes()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert (part.status_code, len(part.data)) == (206, 4)


# ---------------------------------------------------------------- odd files


def ended(error: str) -> str:
    return json.dumps({"valid?": "unknown", "error": error, "workload": {"valid?": True}})


LARGE = "\0" * (5 * 2**20) + "},\n :valid? false}\n"
DEAD, STOPPED = "Node n1 exited with status 1.", "The run was stopped by Ctrl-C."
# A file that is all that a run has; its verdict in the list, and a pattern of its page.
ODD = [
    ("test.json", '{"workload": "ka', "", "test.json cannot be read|There is no history"),
    ("results.json", ended(DEAD), "crashed", DEAD),
    ("results.json", ended(STOPPED), "unknown", STOPPED),
    ("results.edn", LARGE, "invalid", "Invalid: .*too large to be read"),
    ("results.json", "[]", "", ""),
    ("results.json", '{"valid?": fal', "", ""),
    ("results.edn", "{:valid? ", "", ""),
    ("results.json", '{"valid?": null, "workload": 3, "net": [], "stats": "x"}', "", ""),
    ("results.json", '{"workload": {"error-types": ["G0"], "G0": 4}}', "", ""),
    ("history.jsonl", "\x00\x01", "", ""),
    ("history.edn", "{:index", "", ""),
    ("net-journal.jsonl", '{"time": 1, "type": "send", "message": {"id": 1}}\n', "", ""),
    ("history.jsonl", '{"index":0,"time":"x","type":"invoke","process":0,"f":"send"}\n', "", ""),
]


@pytest.mark.parametrize(("name", "content", "verdict", "said"), ODD, ids=range(len(ODD)))
def test_a_run_with_an_odd_file_has_its_pages(
    tmp_path: Path, name: str, content: str, verdict: str, said: str
) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    (tmp_path / FIRST / name).write_text(content)
    client = client_of(tmp_path)
    assert listed(client, f"verdict={verdict}") == [FIRST]
    assert re.search(said, text_of(client, f"/run/{FIRST}"), re.DOTALL)
    assert "Timeline" in text_of(client, f"/timeline/{FIRST}")


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


def test_only_this_machine_is_answered(guarded: FlaskClient) -> None:
    assert guarded.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert guarded.get("/", headers={"Host": "127.0.0.1:8080"}).status_code == 200
    assert guarded.post("/").status_code == 405


# ---------------------------------------------------------------- a wrong run


STORM = {"nemesis": ("partition",), "nemesis_interval_s": 0.5, "latency_ms": 10}
# workload -> a node that is wrong, options, the anomaly, and an operation that has a tile
WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "broadcast": ("broadcast_forgets.py", STORM, "lost", "broadcast"),
    "echo": ("echo_wrong.py", {}, "wrong-echo", "echo"),
    "g-counter": ("counter_counts_twice.py", {}, "wrong-sum", "add"),
    "g-set": ("g_set_loses.py", {"latency_ms": 10}, "lost", "add"),
    "lin-kv": ("lin_kv_stale.py", {"nodes": ("n0", "n1", "n2")}, "nonlinearizable", "cas"),
    "pn-counter": ("counter_counts_twice.py", {}, "wrong-sum", "read"),
    "txn-list-append": ("txn_dirty_writes.py", {"latency_ms": 10}, "incompatible-order", "txn"),
    "txn-rw-register": ("txn_dirty_reads.py", {"nodes": ("n0",)}, "G1a", "txn"),
    "unique-ids": ("unique_ids_repeats.py", {}, "duplicated", "generate"),
}
QUICK = {"broadcast", "txn-list-append"}  # the others have nothing on a page that these have not


def write_run(store: Path, workload: str, script: str, **options: Any) -> tuple[Path, VirtualRun]:
    """A run in the simulator, with the files that the bench leaves."""
    folder = store / workload / "20260101T000000.000"
    folder.mkdir(parents=True)
    chosen = {"time_limit_s": 2, "key_count": None, **options}
    run = VirtualRun(make=node_of(ROOT / "tests/nodes" / script), workload=workload, **chosen)
    (folder / "history.jsonl").write_bytes(run.history_file.content)
    (folder / "net-journal.jsonl").write_bytes(run.journal_file.content)
    recorded = run.options.as_dict() | {"history_origin_ns": run.outcome.history_origin_ns}
    kept.write_json(folder / "test.json", recorded)
    kept.write_results(folder, judged(run))
    return folder, run


@pytest.mark.simulation
@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow)
        for each in sorted({*workloads.NAMES} - {"kafka"})
    ],
)
def test_a_wrong_run_is_shown_drawn_and_judged_again(tmp_path: Path, workload: str) -> None:
    script, options, anomaly, operation = WRONG[workload]
    folder, run = write_run(tmp_path, workload, script, **options)
    page = create_app(Shelf(Store(tmp_path))).test_client().get(f"/run/{workload}/{folder.name}")
    assert page.status_code == 200
    text = html.unescape(page.text)
    assert re.search(rf'<h3 id="{anomaly}" class="invalid">', text)
    assert f"{operation}: p50" in text
    assert "did not pass" not in text, "what the sentences say is not said again in numbers"
    drawn = draw_all(folder, run.history, run.options.as_dict())
    assert [each for each in drawn.values() if isinstance(each, Exception)] == []
    assert edn.loads((folder / "results.edn").read_text())["valid?"] is False
    with pytest.raises(SystemExit) as ended:
        check.main(["--json", str(folder)], standalone_mode=False)
    assert ended.value.code == 1


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([["send", "6", 1]], 'key "6": message 1'),
        ([["send", "6", [0, 1]]], 'key "6": message 1 at offset 0'),
        ([["poll"]], "any key that is assigned"),
        ([["poll", {}]], "nothing"),
        (
            [["poll", {"6": [[16, 5], [17, 8]], 7: []}]],
            'key "6": message 5 at offset 16, message 8 at offset 17\nkey 7: nothing',
        ),
        ([["send", 1, [0, 1]], ["poll", {}]], "key 1: message 1 at offset 0\nnothing"),
        ([["poll", {"6": [[16]]}]], '[["poll" {"6" [[16]]}]]'),
        ([["cas", 1, 2]], '[["cas" 1 2]]'),
        ([1, 2], "[1 2]"),
        ([], "[]"),
        (None, ""),
    ],
)
def test_values_of_the_log_are_words_and_others_edn(value: Any, text: str) -> None:
    assert readable(value) == text


def test_a_long_value_is_cut() -> None:
    polled = [[at, at] for at in range(20)]
    assert readable([["poll", {"1": polled}]]).endswith("message 7 at offset 7, 12 more")
    assert len(readable(["x" * 1000])) < 500


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("lost-write", "A message was acknowledged or seen, messages behind it were polled"),
        ("G1a", "<em>Aborted read.</em> A poll returned a message"),
        ("int-poll-skip", "One answer to a poll leaves out messages"),
        (
            "G-single-item-realtime",
            "A cycle in which one transaction missed",
        ),  # no section of its own
        ("no-such-anomaly", ""),
    ],
)
def test_a_page_says_itself_what_an_anomaly_means(name: str, begins: str) -> None:
    text = meaning(name)
    assert text.startswith(begins)
    assert bool(text) == bool(begins)
    assert not re.search(r"[`*\[]|\]\(|###", text)  # no Markdown is left


def test_what_an_anomaly_means_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glossary, "meaning", lambda _name: "a < b & `c`")
    assert meaning("") == "a &lt; b &amp; <code>c</code>"
