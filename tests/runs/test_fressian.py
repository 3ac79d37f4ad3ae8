"""The reader of Fressian, against expected events and against cut and broken input."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import fressian
from tests.stores import STORES


def expected_events(store: Path) -> list[dict[str, Any]]:
    with gzip.open(store / "net-journal.expected.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_fressian_journal_is_exactly_the_expected_one(store: Path) -> None:
    stripes = (store / "net-journal").glob("*.fressian")
    events = [event for file in stripes for event in fressian.journal_events(file.read_bytes())]
    assert sorted(events, key=lambda event: event["id"]) == expected_events(store)


def test_fressian_cut_anywhere_gives_whole_events_and_then_says_where() -> None:
    data = (STORES / "valid-3-nodes" / "net-journal" / "0.fressian").read_bytes()
    whole = list(fressian.journal_events(data))
    told = dict[int, str]()
    for end in range(1, len(data)):
        events = []
        try:
            for event in fressian.journal_events(data[:end]):
                events.append(event)  # noqa: PERF402 - what came before the error is kept
        except fressian.FressianError as error:
            told[error.offset] = str(error)
        assert events == whole[: len(events)]
    assert all("ends inside a record" in text for text in told.values())
    assert len(told) == len(whole)


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
        ("e6cddc616280", ["ab", "ab"]),  # through the priority cache
        ("c6d2ff00", -256),
        ("e6efdb78020102a00304", [{"tag": "x", "value": [1, 2]}, {"tag": "x", "value": [3, 4]}]),
        ("e6efdb78020102f0000304", [{"tag": "x", "value": [1, 2]}, {"tag": "x", "value": [3, 4]}]),
    ],
)
def test_fressian_values(data: str, value: object) -> None:
    assert fressian.FressianReader(bytes.fromhex(data)).read() == value
