"""Reading and writing histories, in every form a file can have."""

import gzip
import io
from pathlib import Path

import pytest

from runs.files import HISTORIES
from runs.history import (
    HistoryError,
    Op,
    completions,
    edn_line,
    find_history,
    json_line,
    read_history,
    write_edn,
    write_jsonl,
)
from runs.keyword import Keyword
from runs.store import Folder
from tests.stores import STORES

LINE = (
    "{:index 2999, :time 1935385382, :type :ok, :process 2, :f :send,"
    ' :value [[:send "50" [10 11]]]}'
)
POLL = Op(7, 8, "ok", 3, Keyword("poll"), [[Keyword("poll"), {"50": [[10, 11]]}]])


def test_reads_and_writes_a_line_of_the_real_tool(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(LINE + "\n")
    (op,) = read_history(path)
    assert op == Op(2999, 1935385382, "ok", 2, "send", [["send", "50", [10, 11]]])
    assert isinstance(op.value[0][0], Keyword)
    assert edn_line(op) == LINE


@pytest.mark.parametrize("store", sorted(STORES.iterdir()), ids=lambda store: store.name)
def test_writes_a_real_history_as_it_was(store: Path) -> None:
    ops = read_history(store / "history.edn")
    written = io.StringIO()
    write_edn(ops, written)
    lines = zip(
        written.getvalue().splitlines(),
        (store / "history.edn").read_text().splitlines(),
        ops,
        strict=True,
    )
    # Members of a set have no order, and only the nemesis has sets.
    assert all(ours == real for ours, real, op in lines if op.process != "nemesis")
    assert len(ops) == len(written.getvalue().splitlines()) > 500


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("form", ["edn", "jsonl"])
def test_content_decides_how_a_file_is_read_not_its_name(
    tmp_path: Path, form: str, compress: bool
) -> None:
    buffer = io.BytesIO()
    if form == "jsonl":
        write_jsonl([POLL], buffer)
    else:
        buffer.write(f"{edn_line(POLL)}\n".encode())
    path = tmp_path / "anything"
    path.write_bytes(gzip.compress(buffer.getvalue()) if compress else buffer.getvalue())
    (op,) = read_history(path)
    assert op == POLL
    assert edn_line(op) == edn_line(POLL)


def test_json_has_the_same_keys_as_strings() -> None:
    op = Op(1, 2, "info", "nemesis", Keyword("stop"), {Keyword("a"): {2, 1}}, {"error": "x"})
    expected = b'{"index":1,"time":2,"type":"info","process":"nemesis","f":"stop"'
    assert json_line(op) == expected + b',"value":{"a":[1,2]},"error":"x"}'


NEMESIS = (
    "{:index 4, :time 5, :type :info, :process :nemesis, :f :stop-partition,"
    " :value :network-healed, :error [:crash nil]}"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NEMESIS, Op(4, 5, "info", "nemesis", "stop-partition", "network-healed", {"error": ["crash", None]})),
        (
            "; by hand\n#jepsen.history.Op{:f :poll :type :ok :process 1 :value [[:poll {}]]}\n\n",
            Op(1, 1, "ok", 1, "poll", [["poll", {}]]),
        ),
        ("", None),
    ],
)  # fmt: skip
def test_other_operations_are_read_too(tmp_path: Path, text: str, expected: Op | None) -> None:
    path = tmp_path / "history.edn"
    path.write_text(text)
    ops = read_history(path)
    assert ops == ([expected] if expected else [])
    assert text != NEMESIS or edn_line(ops[0]) == text


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (f"{LINE}\n{LINE[:-20]}".encode(), 2, r"line 2: no EDN .* cut off"),
        (b'{"type": "ok", "f": "poll"}\n{"type": ', 2, "line 2: no JSON .* cut off"),
        (b"{:a 1}", 1, "line 1: no operation: it needs :type"),
        (b"\xff\xfe\x00", None, "neither text nor gzip"),
        (gzip.compress(LINE.encode(), mtime=0)[:-9], None, "broken gzip data"),
        (b'{"f": "poll", "type": "maybe"}', 1, "no operation"),
    ],
)
def test_an_error_names_file_and_line_and_says_what_to_do(
    tmp_path: Path, content: bytes, line: int | None, problem: str
) -> None:
    path = tmp_path / "history"
    with pytest.raises(HistoryError, match="cannot be read: No such file"):
        read_history(path)
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=problem) as caught:
        read_history(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert str(path) in str(caught.value)


def test_completions_pairs_what_one_process_invoked_and_completed() -> None:
    ops = [
        Op(0, 0, "invoke", 0, "poll"),
        Op(1, 1, "invoke", 1, "poll"),
        Op(2, 2, "ok", 1, "poll"),
        Op(3, 3, "info", 0, "poll"),
        Op(4, 4, "invoke", 2, "poll"),
        Op(5, 5, "ok", 9, "poll"),
    ]
    assert completions(ops) == {1: 2, 0: 3}


ENDED_BADLY = [
    Op(0, 1, "invoke", 0, Keyword("poll"), [[Keyword("poll")]]),
    Op(1, 2, "info", 0, Keyword("poll"), [[Keyword("poll")]], {"error": Keyword("net-timeout")}),
    Op(2, 3, "fail", 1, Keyword("send"), [], {"error": [Keyword("abort"), "no: why not"]}),
    Op(3, 4, "info", 1, Keyword("send"), [], {"error": "indeterminate: it broke"}),
]


def test_both_forms_of_a_history_say_the_same(tmp_path: Path) -> None:
    with (tmp_path / "history.jsonl").open("wb") as file:
        write_jsonl(ENDED_BADLY, file)
    with (tmp_path / "history.edn").open("w") as file:
        write_edn(ENDED_BADLY, file)
    read = [[edn_line(op) for op in read_history(tmp_path / name)] for name in HISTORIES[::2]]
    assert read[0] == read[1] == [edn_line(op) for op in ENDED_BADLY]


@pytest.mark.parametrize("count", range(1, len(HISTORIES) + 1))
def test_of_several_forms_the_one_that_is_read_fastest_is_chosen(
    tmp_path: Path, count: int
) -> None:
    for name in HISTORIES[-count:]:
        (tmp_path / name).touch()
    assert find_history(tmp_path).name == HISTORIES[-count]
    assert Folder(tmp_path, "run").history == find_history(tmp_path)
