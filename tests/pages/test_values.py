"""Values of operations in words; those of another form as EDN, so that nothing is hidden."""

from typing import Any

import pytest

from bench.pages.findings import readable


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
