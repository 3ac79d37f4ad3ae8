"""Reading and writing histories, in every form a file can have.

The EDN reader and writer, with edn-format as the oracle.
"""

import gzip
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import edn_format
import pytest
from edn_format.immutable_dict import ImmutableDict
from edn_format.immutable_list import ImmutableList
from hypothesis import given
from hypothesis import strategies as st

from runs.edn import EdnError, Symbol, TaggedMap, dumps, loads, loads_all
from runs.files import HISTORIES
from runs.history import (
    HistoryError,
    Keyword,
    Op,
    completions,
    edn_line,
    find_history,
    json_line,
    read_history,
)
from runs.store import Folder
from tests.stores import STORES

LINE = (
    "{:index 2999, :time 1935385382, :type :ok, :process 2, :f :send,"
    ' :value [[:send "50" [10 11]]]}'
)


@pytest.mark.parametrize("store", sorted(STORES.iterdir()), ids=lambda store: store.name)
def test_writes_a_real_history_as_it_was(store: Path) -> None:
    ops = read_history(store / "history.edn")
    written = [edn_line(op) for op in ops]
    lines = zip(
        written,
        (store / "history.edn").read_text().splitlines(),
        ops,
        strict=True,
    )
    # Members of a set have no order, and only the nemesis has sets.
    assert all(ours == real for ours, real, op in lines if op.process != "nemesis")
    assert len(written) > 500


OPERATIONS = [
    Op(0, 1, "invoke", 0, Keyword("poll"), [[Keyword("poll")]]),
    Op(1, 2, "info", 0, Keyword("poll"), [[Keyword("poll")]], {"error": Keyword("net-timeout")}),
    Op(2, 3, "fail", 1, Keyword("send"), [], {"error": [Keyword("abort"), "no: why not"]}),
    Op(3, 4, "info", 1, Keyword("send"), [], {"error": "indeterminate: it broke"}),
    Op(7, 8, "ok", 3, Keyword("poll"), [[Keyword("poll"), {"50": [[10, 11]]}]]),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    "line_of", [edn_line, lambda op: json_line(op).decode()], ids=["edn", "json"]
)
def test_content_decides_how_a_file_is_read_not_its_name(
    tmp_path: Path, line_of: Callable[[Op], str], pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "anything"
    path.write_bytes(pack("\n".join(map(line_of, OPERATIONS)).encode()))
    read = read_history(path)
    assert [edn_line(op) for op in read] == [edn_line(op) for op in OPERATIONS]
    assert read[-1] == OPERATIONS[-1]


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
        (LINE, Op(2999, 1935385382, "ok", 2, "send", [["send", "50", [10, 11]]])),  # of the real tool
        (NEMESIS, Op(4, 5, "info", "nemesis", "stop-partition", "network-healed", {"error": ["crash", None]})),
        (
            "; by hand\n#jepsen.history.Op{:f :poll :type :ok :process 1 :value [[:poll {}]]}\n\n",
            Op(1, 1, "ok", 1, "poll", [["poll", {}]]),
        ),
        ("", None),
    ],
)  # fmt: skip
def test_an_operation_is_read_and_written_as_it_was(
    tmp_path: Path, text: str, expected: Op | None
) -> None:
    path = tmp_path / "history.edn"
    path.write_text(text)
    ops = read_history(path)
    assert ops == ([expected] if expected else [])
    assert text not in (LINE, NEMESIS) or edn_line(ops[0]) == text  # keywords are such


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


@pytest.mark.parametrize("count", range(1, len(HISTORIES) + 1))
def test_of_several_forms_the_one_that_is_read_fastest_is_chosen(
    tmp_path: Path, count: int
) -> None:
    for name in HISTORIES[-count:]:
        (tmp_path / name).touch()
    assert find_history(tmp_path).name == HISTORIES[-count]
    assert Folder(tmp_path, "run").history == find_history(tmp_path)


# ---------------------------------------------------------------- edn

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
def test_reads_back_what_it_writes_as_the_oracle_does(value: Any, pretty: bool) -> None:
    text = dumps(value, pretty=pretty, width=20)
    assert typed(loads(text)) == typed(value) == typed(from_oracle(edn_format.loads(text)))


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
