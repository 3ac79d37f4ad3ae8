"""Names of users as segments of keys (`leaderless.store.names`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderless.store.names import SEGMENT_BYTES_MAX, name_of, segment_of

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders-1.eu_x", "orders-1.eu_x"), ("", "="), (".", "=2E"), ("..", "=2E."), ("a/b", "a=2Fb"),
        ("a%2Fb", "a=252Fb"), ("a=2Fb", "a=3D2Fb"), ("ü", "=C3=BC"), ("a b", "a=20b"), ("\0", "=00"),
    ],
)  # fmt: skip
def test_a_name_is_one_segment(name: str, segment: str) -> None:
    assert segment_of(name) == segment
    assert name_of(segment) == name


@given(NAMES)
def test_a_segment_tells_its_name_and_climbs_nowhere(name: str) -> None:
    segment = segment_of(name)
    assert name_of(segment) == name
    assert "/" not in segment
    assert "%" not in segment
    assert segment not in ("", ".", "..")
    assert segment.isascii()


@pytest.mark.parametrize("name", ["x" * (SEGMENT_BYTES_MAX + 1), "ü" * 200, "\ud800"])
def test_a_name_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"takes .* bytes|must be text"):
        segment_of(name)


@pytest.mark.parametrize("segment", ["", "..", "a=2fb", "a=41", "=2", "=ZZ", "a/b", "=FF"])
def test_what_is_no_segment_has_no_name(segment: str) -> None:
    with pytest.raises(ValueError, match="is no escaped name"):
        name_of(segment)
