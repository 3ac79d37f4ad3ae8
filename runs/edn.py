"""EDN, the notation of Clojure's data, which is what the real tool writes and reads.

`loads` and `dumps` map keywords to `Keyword`, strings to `str`, vectors to lists, lists to tuples, maps to
dicts, sets to sets, characters to one-letter strings, ratios to `Fraction`; the suffixes N and M are dropped. A
map with a tag (`#jepsen.history.Op{...}`) becomes a `TaggedMap`; any other tag is dropped, and what it stands
before is kept. Collections inside sets and map keys become tuples, so that they hash.

The reader is one regular expression and a stack. Its one shortcut is the token `pairs`: a vector of
pairs of numbers, which fills most of a history, is one comma away from JSON and is read as such
(see docs/decisions/0002-own-edn-reader.md for why there is a reader here at all).
"""

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

DIGITS_MAX = 300  # of a number: a longer one is no float, and Python reads up to 4300
DEPTH_MAX = 200  # of collections in collections; `dumps` and others call themselves for each
_NATURAL = rf"(?:0|[1-9]\d{{0,{DIGITS_MAX - 1}}})"
_TOKEN = re.compile(
    rf"""
    [\s,]*(?:
      (?P<pairs>\[\[{_NATURAL}\ {_NATURAL}\](?:\ \[{_NATURAL}\ {_NATURAL}\])*\])
    | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<open>\#?\{{|[\[(])
    | (?P<close>[\])}}])
    | (?P<discard>\#_)
    | (?P<char>\\(?:u[0-9a-fA-F]{{4}}|[a-z]+|.))
    | (?P<atom>[^\s,"\[\]{{}}()\\;]+)
    | (?P<blank>;[^\n]*|\Z)
    | (?P<bad>.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?\d+N?")
_RATIO = re.compile(r"[+-]?\d+/\d+")
_FLOAT = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "'": "'"}
_CHARACTERS = {
    "newline": "\n",
    "space": " ",
    "tab": "\t",
    "return": "\r",
    "backspace": "\b",
    "formfeed": "\f",
}
_CONSTANTS = {
    "nil": None,
    "true": True,
    "false": False,
    "##Inf": float("inf"),
    "##-Inf": float("-inf"),
    "##NaN": float("nan"),
}
_CLOSER = {"[": "]", "(": ")", "{": "}", "#{": "}"}


class EdnError(ValueError):
    """Text that is no EDN. `line` counts from 1."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(f"line {line}: {problem}")
        self.problem = problem
        self.line = line


class Keyword(str):
    """An EDN keyword, without its colon: `Keyword("valid?")` is written `:valid?`.

    It *is* a `str` (equal to it, hashes like it, prints like it, JSON-encodes like it), so code compares and
    looks up with plain literals; only the EDN writer cares which of the two it has.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f":{self}"


def keywords(**entries: Any) -> dict[Keyword, Any]:
    """A dict with keyword keys: `keywords(ok_count=3)` is `{:ok-count 3}`; `valid` becomes `:valid?`."""
    return {
        Keyword("valid?" if name == "valid" else name.replace("_", "-")): value
        for name, value in entries.items()
    }


class Symbol(str):
    """An EDN symbol: a bare word that is neither a keyword nor a constant."""

    __slots__ = ()


class TaggedMap(dict[Any, Any]):
    """A map with an EDN tag: `TaggedMap("jepsen.history.Op", {...})` is `#jepsen.history.Op{...}`."""

    def __init__(self, tag: str, entries: Any = ()) -> None:
        super().__init__(entries)
        self.tag = tag


class _Prefix(NamedTuple):
    """What waits for the next value: a tag, or (without one) an order to discard it."""

    tag: str | None


def loads(text: str) -> Any:
    """Read the one value in `text`. Raises `EdnError` if there is none, or more than one."""
    values = loads_all(text)
    if len(values) != 1:
        raise EdnError(f"expected one value and found {len(values)}", 1)
    return values[0]


def loads_all(text: str) -> list[Any]:
    """Read every value in `text`, one after the other. Raises `EdnError` at the first that is broken."""
    values: list[Any] = []
    stack: list[tuple[str, int, list[Any]]] = []
    items = values
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or "bad"
        word, position = token[kind], token.start(kind)
        try:
            if kind == "discard" or (kind == "atom" and word[0] == "#" and word[1:2] != "#"):
                items.append(_Prefix(word[1:] if kind == "atom" else None))
            elif kind == "open":
                if len(stack) == DEPTH_MAX:
                    raise ValueError(f"collections must stand at most {DEPTH_MAX} deep")
                stack.append((word, position, items))
                items = []
            elif kind == "close":
                _check_closed(stack[-1][0] if stack else "nothing", items, word)
                opener, _, outside = stack.pop()
                _add(outside, _collection(opener, items))
                items = outside
            elif kind != "blank":
                _add(items, _SCALARS[kind](word))
        except ValueError as error:
            raise EdnError(str(error), _line(text, position)) from None
    if stack:
        opener, position, _ = stack[-1]
        raise EdnError(f"{opener} is never closed: the text is cut off", _line(text, position))
    if values and type(values[-1]) is _Prefix:
        raise EdnError("the text ends after a tag or #_", _line(text, len(text)))
    return values


def _add(items: list[Any], value: Any) -> None:
    while items and type(items[-1]) is _Prefix:
        prefix = items.pop()
        if prefix.tag is None:
            return
        value = TaggedMap(prefix.tag, value) if prefix.tag and type(value) is dict else value
    items.append(value)


def _check_closed(opener: str, items: list[Any], closer: str) -> None:
    """Raise `ValueError` unless `closer` closes the collection that is open, whose members are `items`."""
    if _CLOSER.get(opener) != closer:
        raise ValueError(f"{closer} closes {opener}")
    if items and type(items[-1]) is _Prefix:
        raise ValueError(f"nothing follows a tag or #_ before {closer}")
    if opener == "{" and len(items) % 2:
        raise ValueError("a map has a key without a value")


def _collection(opener: str, items: list[Any]) -> Any:
    if opener == "[":
        return items
    if opener == "(":
        return tuple(items)
    if opener == "#{":
        return {hashable(item) for item in items}
    return {hashable(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


def hashable(value: Any) -> Any:
    """`value` as something that can be a member of a set: collections become tuples, all the way down."""
    if isinstance(value, list | tuple):
        return tuple(hashable(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(value)
    if isinstance(value, dict):
        return tuple((hashable(key), hashable(each)) for key, each in value.items())
    return value


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


@lru_cache(maxsize=4096)
def _atom(word: str) -> Any:
    if word[0] == ":" and len(word) > 1:
        return Keyword(word[1:])
    if len(word) > DIGITS_MAX and word.lstrip("+-")[:1].isdigit():
        raise ValueError(f"a number has at most {DIGITS_MAX} characters, not {len(word)}")
    if _INTEGER.fullmatch(word):
        return int(word.rstrip("N"))
    if _FLOAT.fullmatch(word):
        return float(word.rstrip("M"))
    if _RATIO.fullmatch(word) and not word.endswith("/0"):
        return Fraction(word)
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word[0].isdigit() or word.startswith((":", "##")):
        raise ValueError(f"{word!r} is neither a number nor a name")
    return Symbol(word)


def _string(word: str) -> str:
    """Its escapes are those of JSON."""
    try:
        return str(json.loads(word, strict=False)) if "\\" in word else word[1:-1]
    except ValueError:
        raise ValueError(f"unknown escape in the string {word:.40}") from None


def _char(word: str) -> str:
    name = word[1:]
    if name[0] == "u" and len(name) == 5:
        return chr(int(name[1:], 16))
    if len(name) > 1 and name not in _CHARACTERS:
        raise ValueError(f"unknown character {word}")
    return _CHARACTERS.get(name, name)


def _bad(word: str) -> Any:
    problem = "a string is never closed" if word == '"' else f"{word!r} begins no value"
    raise ValueError(f"{problem}: the text is cut off or is no EDN")


_SCALARS: dict[str, Callable[[str], Any]] = {
    "atom": _atom,
    "pairs": lambda word: json.loads(word.replace(" ", ",")),
    "string": _string,
    "char": _char,
    "bad": _bad,
}

_ESCAPES = str.maketrans(
    {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
)


def dumps(value: Any, pretty: bool = False, width: int = 100) -> str:
    """Write `value` as EDN: on one line, or `pretty`, broken where a line would pass `width` columns."""
    return _written(value, 0, width if pretty else math.inf)


def _written(value: Any, column: int = 0, width: float = math.inf) -> str:
    """A value whose first line starts at `column`; the members of a broken one are aligned under the first."""
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return _scalar(value)
    opener, closer, members = _parts(value)
    inside = column + len(opener)
    texts = [before + _written(each, inside + len(before), width) for before, each in members]
    comma = "," if isinstance(value, dict) else ""
    line = opener + f"{comma} ".join(texts) + closer
    if column + len(line) <= width and "\n" not in line:
        return line
    return opener + f"{comma}\n{' ' * inside}".join(texts) + closer


def _scalar(value: Any) -> str:
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, Symbol):
        return str(value)
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "##Inf", "-inf": "##-Inf", "nan": "##NaN"}[str(value)]
    if isinstance(value, int | float | Fraction):
        return str(value)
    raise TypeError(f"EDN has no notation for {type(value).__name__}: {value!r}")


def _parts(value: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    """The brackets of a collection, and its members, each with what stands before it: its key, in a map."""
    if isinstance(value, dict):
        opener = f"#{value.tag}{{" if isinstance(value, TaggedMap) else "{"
        return opener, "}", [(f"{_written(key)} ", each) for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return "#{", "}", [("", each) for each in sorted(value, key=_written)]
    opener, closer = "()" if isinstance(value, tuple) else "[]"
    return opener, closer, [("", each) for each in value]
