"""The text of JSON as a value: it comes back as it is, or is refused (`leaderless.store.values.json_of`)."""

import pytest

from leaderless.errors import Unfit
from leaderless.store.values import Json, json_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e19", 1e19),
        ('{"a": [1.5e30, "123456789012345678901234567890", null]}', None),
        ('"é"'.encode(), "é"),
    ],
)
def test_what_can_be_kept_is_the_value_of_its_text(text: bytes | str, value: Json) -> None:
    wanted = {"a": [1.5e30, "123456789012345678901234567890", None]} if value is None else value
    assert json_of(text) == wanted
    assert type(json_of(text)) is type(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551616",
        '{"a": [1, -9223372036854775809]}',
        b'[18446744073709551616, "1"]',
        "9" * 300,
    ],
)
def test_an_integer_beyond_64_bits_is_refused(text: bytes | str) -> None:
    with pytest.raises(Unfit, match="integer beyond 64 bits"):
        json_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "NaN",
        "1e400",
        '"\\ud800"',
        '"\ud800"',
        b'"\xff"',
        "[" * 1000 + "1e20" + "]" * 1000,
        "[" * 2000 + "]" * 2000,
    ],
)
def test_what_is_no_json_or_nobody_can_keep_is_refused(text: bytes | str) -> None:
    with pytest.raises(Unfit, match="no JSON that can be kept"):
        json_of(text)
