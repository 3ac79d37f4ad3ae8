"""The EDN reader and writer, with edn-format as the oracle."""

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import edn_format
import pytest
from edn_format.immutable_dict import ImmutableDict
from edn_format.immutable_list import ImmutableList
from hypothesis import given
from hypothesis import strategies as st

from runs.edn import EdnError, Symbol, TaggedMap, dumps, loads, loads_all
from runs.keyword import Keyword

NAMES = st.from_regex(r"[a-z][a-z0-9-]*[?!]?(/[a-z][a-z0-9-]*)?", fullmatch=True)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])).map(
        lambda text: text + '"\\\n'
    )
    | NAMES.map(Keyword)
)
KEYS = st.integers() | NAMES.map(Keyword) | NAMES
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.sets(KEYS)
        | st.dictionaries(KEYS, inner)
        | st.lists(st.tuples(st.integers(), st.integers()).map(list))
    ),
    max_leaves=20,
)


def typed(value: Any) -> Any:
    """`value` with its types, so that 1, 1.0 and true, keywords and strings, are told apart."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, [typed(each) for each in value])
    if isinstance(value, set):
        return ("set", sorted(map(repr, map(typed, value))))
    if isinstance(value, dict):
        return ("dict", sorted((repr(typed(key)), typed(each)) for key, each in value.items()))
    return (type(value).__name__, value)


def from_oracle(value: Any) -> Any:
    """What edn-format read, in the types of this project."""
    if isinstance(value, edn_format.Keyword):
        return Keyword(value.name if value.namespace is None else str(value)[1:])
    if isinstance(value, ImmutableList | list):
        return [from_oracle(each) for each in value]
    if isinstance(value, tuple):
        return tuple(from_oracle(each) for each in value)
    if isinstance(value, frozenset):
        return {from_oracle(each) for each in value}
    if isinstance(value, ImmutableDict):
        return {from_oracle(key): from_oracle(each) for key, each in value.items()}
    return float(value) if isinstance(value, Decimal) else value


@given(VALUES, st.booleans())
def test_reads_back_what_it_writes(value: Any, pretty: bool) -> None:
    assert typed(loads(dumps(value, pretty=pretty, width=20))) == typed(value)


@given(VALUES)
def test_reads_the_same_as_the_oracle(value: Any) -> None:
    text = dumps(value)
    assert typed(loads(text)) == typed(from_oracle(edn_format.loads(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#jepsen.history.Op{:index 1}", TaggedMap("jepsen.history.Op", {"index": 1})),
        ('#object[java.lang.Object "0x1f" "x"]', [Symbol("java.lang.Object"), "0x1f", "x"]),
        ("[1 #_ 2 #_ #_ 3 4 5]", [1, 5]),
        ("; a comment\n1 ; another", 1),
        (":name.space/word", Keyword("name.space/word")),
        ("1.5M", 1.5),
        ("12N", 12),
        ("-2/3", Fraction(-2, 3)),
        (r"[\a \newline \u0041 \(]", ["a", "\n", "A", "("]),
        (r'"a\tb\u00e9\\"', "a\tbé\\"),
        ("word", Symbol("word")),
        ("{[1 2] :a, {:b 1} :c}", {(1, 2): Keyword("a"), ((Keyword("b"), 1),): Keyword("c")}),
        ("#{1 [2 3]}", {1, (2, 3)}),
        ("[[0 1] [2 3]]", [[0, 1], [2, 3]]),
        ("[[0 1] [2 -3]]", [[0, 1], [2, -3]]),
        ("[[00 1]]", [[0, 1]]),
        ("##Inf", float("inf")),
        ("[1,2,,3]", [1, 2, 3]),
    ],
)
def test_reads(text: str, value: Any) -> None:
    assert loads(text) == value


def test_keeps_the_tag_of_a_map_and_writes_it_again() -> None:
    text = "[#jepsen.history.Op{:index 1, :value #{}}]"
    assert dumps(loads(text)) == text


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[1 2", 1, r"\[ is never closed"),
        ("\n{:a 1}\n[1 }", 3, r"} closes \["),
        ("]", 1, "closes nothing"),
        ('\n"abc', 2, "a string is never closed"),
        ("{:a}", 1, "a key without a value"),
        ("[1 #_]", 1, "nothing follows"),
        ("1 #tag", 1, "ends after a tag"),
        ("12abc", 1, "neither a number nor a name"),
        ('"\\q"', 1, "unknown escape"),
        (r"\wrong", 1, "unknown character"),
        ("1 2", 1, "expected one value and found 2"),
        ("", 1, "found 0"),
        ("1/0", 1, "neither a number"),
    ],
)
def test_says_where_a_text_is_broken(text: str, line: int, problem: str) -> None:
    with pytest.raises(EdnError, match=problem) as caught:
        loads(text)
    assert caught.value.line == line


@given(st.text(alphabet='[]{}()#_":;\\ \n1a-/.,u0nil'))
def test_reads_or_refuses_any_text(text: str) -> None:
    with suppress(EdnError):
        loads_all(text)


def test_breaks_long_lines_and_aligns_members() -> None:
    value = {Keyword("first"): [1, 2, 3], Keyword("second"): ({Keyword("a"): "b" * 10},)}
    assert dumps(value, pretty=True, width=24) == (
        '{:first [1 2 3],\n :second ({:a "bbbbbbbbbb"})}'
    )


def test_refuses_to_write_what_edn_cannot_say() -> None:
    with pytest.raises(TypeError, match="no notation for bytes"):
        dumps([b"x"])
