"""The readers of EDN and Fressian, against other readers and against cut and broken input."""

import gzip
import json
import math
from contextlib import suppress
from pathlib import Path

import edn_format
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formats import edn
from runs import fressian

STORES = Path(__file__).parents[1] / "fixtures" / "maelstrom-stores"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{:a 1, :b/c [nil true false]}", {"a": 1, "b/c": [None, True, False]}),
        ('#{"n1" :x sym}', ["n1", "x", "sym"]),
        ('[[:poll {"5" [[0 1] [2 3]]}]]', [["poll", {"5": [[0, 1], [2, 3]]}]]),
        ("(-1 +2 3N 1.5 2M 1e3 -0.5E-1 1/4)", [-1, 2, 3, 1.5, 2.0, 1000.0, -0.05, 0.25]),
        (r'"a\"b\\c\nd\u00e9 {;"', 'a"b\\c\ndé {;'),
        (r"[\a \newline \u0041 \space]", ["a", "\n", "A", " "]),
        ("{1 :one, nil 2, [3] 4}", {"1": "one", "null": 2, "[3]": 4}),
        ("[1 #_ 2 #_ #_ 3 4 5 ; six\n 7]", [1, 5, 7]),
        ('#jepsen.history.Op{:f :send, :at #inst "2026"}', {"f": "send", "at": "2026"}),
        ("  ; only a comment\n :k ; another", "k"),
        ("[##Inf ##-Inf]", [math.inf, -math.inf]),
        ("{}", {}),
    ],
)
def test_edn_values(text: str, value: object) -> None:
    assert edn.loads(text) == value


@pytest.mark.parametrize(
    "text", ["", "[1", "{:a}", "[1}", "]", '"open', "1 2", '"\\q"', "#_ 1", "[" * 100_000]
)
def test_edn_refuses_what_is_no_value(text: str) -> None:
    with pytest.raises(edn.EdnError):
        edn.loads(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def as_edn(value: object) -> str:
    match value:
        case None:
            return "nil"
        case dict():
            return "{" + ", ".join(f"{as_edn(k)} {as_edn(v)}" for k, v in value.items()) + "}"
        case list():
            return "(" + " ".join(map(as_edn, value)) + ")"
    return json.dumps(value)


@given(JSON_VALUES)
def test_edn_reads_back_what_was_written(value: object) -> None:
    assert edn.loads(as_edn(value)) == value


@given(st.text(alphabet='[](){}#"\\:_;, a1\n'))
def test_edn_reads_or_refuses_anything(text: str) -> None:
    with suppress(edn.EdnError):
        json.dumps(edn.loads(text))


def test_edn_agrees_with_another_reader(store: Path) -> None:
    lines = [line for line in (store / "history.edn").read_text().splitlines() if "#{" not in line]
    for line in lines[::20]:
        assert edn.loads(line) == plain(edn_format.loads(line))


def plain(value: object) -> object:
    """As `edn.loads` would have it. (Sets have no order to compare.)"""
    match value:
        case edn_format.Keyword():
            return value.name
        case edn_format.ImmutableDict():
            return {str(plain(key)): plain(item) for key, item in value.items()}
        case edn_format.ImmutableList() | tuple():
            return [plain(item) for item in value]
    return value


def expected_events(store: Path) -> list[dict]:
    with gzip.open(store / "net-journal.expected.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_fressian_journal_is_exactly_the_expected_one(store: Path) -> None:
    stripes = (store / "net-journal").glob("*.fressian")
    events = [event for file in stripes for event in fressian.journal_events(file.read_bytes())]
    assert sorted(events, key=lambda event: event["id"]) == expected_events(store)


def test_fressian_cut_anywhere_gives_whole_events_and_then_says_where() -> None:
    data = (STORES / "valid-3-nodes" / "net-journal" / "0.fressian").read_bytes()
    whole = list(fressian.journal_events(data))
    offsets = set()
    for end in range(1, len(data)):
        events, error = read_until_error(data[:end])
        assert events == whole[: len(events)]
        if error:
            assert "ends inside a record" in str(error)
            offsets.add(error.offset)
    assert len(offsets) == len(whole)


def read_until_error(data: bytes) -> tuple[list[dict], fressian.FressianError | None]:
    events = []
    try:
        for event in fressian.journal_events(data):
            events.append(event)  # noqa: PERF402 - what came before the error is kept
    except fressian.FressianError as error:
        return events, error
    return events, None


@given(st.binary(max_size=200))
def test_fressian_reads_or_refuses_anything(data: bytes) -> None:
    with suppress(fressian.FressianError):
        list(fressian.journal_events(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("3f", 63),
        ("ff", -1),
        ("5040", 64),
        ("4fff", -1),
        ("6fffff", 0x7FFFF),
        ("7a0000000001", 1),
        ("f8ffffffffffffff85", -123),
        ("fa3ff8000000000000", 1.5),
        ("f93fc00000", 1.5),
        ("fb", 0.0),
        ("fc", 1.0),
        ("e3055a5a5a5a5a", "ZZZZZ"),  # a string
        ("e2035a5a5adb59", "ZZZY"),  # a string in two chunks
        ("dcc3a9", "é"),
        ("e0eda0bdedb880", "\U0001f600"),  # as two surrogates
        ("d3010203", b"\x01\x02\x03"),
        ("d8020102d90103", b"\x01\x02\x03"),  # in two chunks
        ("c0e8db6101db62f7", {"a": 1, "b": None}),
        ("c1e60102", [1, 2]),
        ("edf5f6fd", [True, False]),
        ("ee0102", [1, 2]),  # a list that ends with the data
        ("e6cddc616280", ["ab", "ab"]),  # through the priority cache
        ("e6cddb61fe05", ["a", 5]),  # which is emptied in between
        ("c6d2ff00", -256),
        ("e6efdb78020102a00304", [{"tag": "x", "value": [1, 2]}, {"tag": "x", "value": [3, 4]}]),
        ("e6efdb78020102f0000304", [{"tag": "x", "value": [1, 2]}, {"tag": "x", "value": [3, 4]}]),
        ("cfcfcfcf000000000000000007", 7),  # after a footer
    ],
)
def test_fressian_values(data: str, value: object) -> None:
    raw = bytes.fromhex(data)
    assert fressian.Reader(raw).read() == value
