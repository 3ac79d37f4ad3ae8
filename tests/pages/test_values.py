"""What anomalies mean, as HTML. Values of operations in words, others as EDN, so that nothing is hidden."""

import re
from typing import Any

import pytest

from bench import judgement
from bench.judgement import readable
from bench.pages.render import meaning


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
    monkeypatch.setattr(judgement, "meaning", lambda _name: "a < b & `c`")
    assert meaning("") == "a &lt; b &amp; <code>c</code>"
