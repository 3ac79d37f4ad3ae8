"""EDN read into JSON-like Python values.

Histories and results of the real tool are EDN. PyPI's `edn_format` reads some 2 000 history lines a
second, this about ten times as many, by tokenising with one regular expression.

What JSON has no word for loses its kind, never its content: keywords, symbols and characters become
strings (`:valid?` -> "valid?"), sets and lists become lists in the order written, tags are dropped
(`#jepsen.history.Op{...}` is its map), and a map key that is no string is written as one (`1` -> "1").

Not a guarantee: what is not EDN is refused only where it cannot be read at all; `loads("1x")` is the
symbol "1x".
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

_TOKEN = re.compile(
    r"""
    [\s,]+ | ;[^\n]*                            # white space and comments: no group, skipped
    | ( "(?:[^"\\]|\\.)*"                       # a string
      | \\(?:u[0-9a-fA-F]{4}|[^\s]\w*)          # a character
      | \#_ | \#\{ | [\[\](){}]                 # discard, and brackets
      | \#\#[A-Za-z]+                           # ##Inf ##-Inf ##NaN
      | [^\s,"\\\[\](){};]+ )                   # number, keyword, symbol or tag
    | (.)                                       # anything else is an error
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?\d+N?\Z")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?M?\Z")
_RATIO = re.compile(r"([+-]?\d+)/(\d+)\Z")
_CONSTANTS = {
    "nil": None,
    "true": True,
    "false": False,
    "##Inf": math.inf,
    "##-Inf": -math.inf,
    "##NaN": math.nan,
}
_CHARACTERS = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t"}
_CLOSERS = frozenset("])}")


class EdnError(ValueError):
    """The text is not one complete EDN value."""


def loads(text: str) -> Any:
    """The one value in `text`.

    Args:
        text: EDN with exactly one top-level value; comments and discards (`#_`) may surround it.
    Raises:
        EdnError: the text is cut off, has unbalanced brackets, or holds no value or several.
    """
    tokens = _tokens(text)
    try:
        value = _value(_significant(tokens), tokens)
    except StopIteration:
        raise EdnError("the text ends inside a value") from None
    except RecursionError:
        raise EdnError("nested too deeply") from None
    if any(token != "#_" for token in _rest(tokens)):
        raise EdnError("more than one value")
    return value


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match[1]:
            yield match[1]
        elif match[2]:
            raise EdnError(f"unexpected {match[2]!r} at character {match.start() + 1}")


def _rest(tokens: Iterator[str]) -> Iterator[str]:
    """What follows the value, without discarded forms."""
    for token in tokens:
        if token == "#_":
            _value(_significant(tokens), tokens)
        else:
            yield token


def _significant(tokens: Iterator[str]) -> str:
    """The next token that starts a value or closes a collection: skips discarded forms."""
    token = next(tokens)
    while token == "#_":
        _value(_significant(tokens), tokens)
        token = next(tokens)
    return token


def _value(token: str, tokens: Iterator[str]) -> Any:
    read = _READERS.get(token)
    if read is not None:
        return read(tokens)
    first = token[0]
    if first == '"':
        return _string(token)
    if first == ":":
        return token[1:]
    if first == "#" and not token.startswith("##"):
        return _value(_significant(tokens), tokens)  # a tag: its value stands for it
    return _character(token[1:]) if first == "\\" else _atom(token)


def _items(tokens: Iterator[str], closer: str) -> list[Any]:
    items = []
    while (token := _significant(tokens)) != closer:
        if token in _CLOSERS:
            raise EdnError(f"found {token} where {closer} was due")
        items.append(_value(token, tokens))
    return items


def _map(tokens: Iterator[str]) -> dict[str, Any]:
    items = _items(tokens, "}")
    if len(items) % 2:
        raise EdnError("a map with a key but no value")
    return dict(zip(map(_key, items[::2]), items[1::2], strict=True))


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key)


def _stray(closer: str) -> Callable[[Iterator[str]], Any]:
    def fail(_: Iterator[str]) -> Any:
        raise EdnError(f"{closer} closes nothing")

    return fail


_READERS: dict[str, Callable[[Iterator[str]], Any]] = {
    "[": lambda tokens: _items(tokens, "]"),
    "(": lambda tokens: _items(tokens, ")"),
    "#{": lambda tokens: _items(tokens, "}"),
    "{": _map,
} | {closer: _stray(closer) for closer in _CLOSERS}


def _string(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    try:
        return str(json.loads(token, strict=False))  # the escapes of EDN are those of JSON
    except json.JSONDecodeError as error:
        raise EdnError(f"unknown escape in {token}") from error


def _character(name: str) -> str:
    if len(name) == 5 and name[0] == "u":
        return chr(int(name[1:], 16))
    return _CHARACTERS.get(name, name)


def _atom(token: str) -> Any:
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    if _INTEGER.match(token):
        return int(token.removesuffix("N"))
    if _NUMBER.match(token):
        return float(token.removesuffix("M"))
    if ratio := _RATIO.match(token):
        return int(ratio[1]) / int(ratio[2])
    return token
