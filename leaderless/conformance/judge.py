"""Judges a program: each write of the store by the laws, and its answers by what is read at the end. No I/O.

Beside the laws, which a program of any kind must keep, stand two rules of who appends: what is full (R16), and
how large a head may be (R17).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.headlog.records import HEAD
from leaderless.store.names import is_own
from leaderless.upkeep.laws.lawful import Observer

Answer = dict[str, Any]  # a line of a program, as JSON
Contents = Mapping[str, Sequence[Sequence[Json]]]  # of each key: offset and message
SHOWN = 300  # characters of an object


class Failed(Exception):
    """The program does what the specification forbids; the text says what."""


class Changes:
    """Judges each change of an object of one log. `broken`: what the first unlawful one was; "": none.

    It is not told of objects that are there already.
    """

    def __init__(self) -> None:
        self.broken: str = ""
        self._observer = Observer()
        self._held: dict[str, bytes] = {}

    def changed(self, key: str, value: bytes | None, request: str) -> None:
        """A request has made an object hold `value`; None: it has deleted it."""
        old = self._held.get(key)
        try:
            require_that(is_own(key), f"R1: {key} is no object of a log")
            self._observer.changed(key, value)
            if key == HEAD and value:
                _require_full_is_full(json.loads(old) if old else None, json.loads(value), value)
        except (InvariantBroken, Failed) as error:
            said = f"{error}\n{request} changed {key}\nold: {_shown(old)}\nnew: {_shown(value)}"
            self.broken = self.broken or said
        self._held[key] = value or b""


def _require_full_is_full(old: Any, new: Any, text: bytes) -> None:
    register_bytes, seal_bytes, seal_entries, _, run_bytes, *_ = new["shape"]
    most = min(register_bytes // 2, register_bytes - run_bytes)
    require_that(len(text) <= most, f"R17: a head of {len(text)} bytes, of at most {most}")
    if old and new["base"] + len(new["entries"]) > old["base"] + len(old["entries"]):
        is_full = old["size"] >= seal_bytes or len(old["entries"]) >= seal_entries
        is_sealed = new["sealed"] > old["sealed"]
        said = "is full, and lets go of nothing" if is_full else "is not full, and lets go of some"
        require_that(is_full == is_sealed, f"R16: an append behind a head that {said}")


def require_that(holds: bool, text: str) -> None:
    """Raise `Failed` with the text where it does not hold."""
    if not holds:
        raise Failed(text)


class Told:
    """What was asked of programs, and what they have said of it."""

    def __init__(self) -> None:
        self._asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._told: list[tuple[str, int | None, list[str]]] = []
        self._named: set[str] = set()
        self._read: list[tuple[str, int, list[str]]] = []

    def appended(self, given: Answer, answer: Answer) -> None:
        """What was said of an append, which is asked again only if it has a name."""
        key, texts = given["key"], [*map(one_text, given["values"])]
        name = one_text(given.get("name"))
        if "error" not in answer:
            self._told.append((key, answer.get("offset"), texts))
        refused = answer.get("may_have_happened") is False and "name" not in given
        if not (refused or name in self._named):
            self._asked[key].update(texts)
        self._named |= {name} if "name" in given else set()

    def known(self, key: str) -> int:
        """How many records of a key were acknowledged until now, at least."""
        return max(
            (
                first + len(texts)
                for at, first, texts in self._told
                if at == key and first is not None
            ),
            default=0,
        )

    def was_read(self, key: str, known: int, answer: Answer) -> None:
        """What was said of a read, which began when so many records were `known`."""
        if "records" in answer:
            self._read.append((key, known, [one_text([*record]) for record in answer["records"]]))

    def require_kept(self, contents: Contents) -> None:
        """All that was acknowledged is there, where it was told, and nothing more often than it was asked for.

        Raises `Failed`.
        """
        for key, records in contents.items():
            offsets = [offset for offset, _ in records]
            require_that(
                offsets == [*range(len(records))], f"key {key!r} has the offsets {offsets}"
            )
            found = Counter(one_text(value) for _, value in records)
            more = found - self._asked[key]
            said = "more often than it was appended, or though it was refused for good"
            require_that(not more, f"key {key!r} has {', '.join(more)} {said}")
        for key, known, texts in self._read:
            whole = [one_text([*record]) for record in contents.get(key, [])]
            is_prefix = texts == whole[: len(texts)] and len(texts) >= known
            said = f"of at least {known} records that were there: {', '.join(texts)}"
            require_that(is_prefix, f"R43: a read of key {key!r} had {said}")
        for key, first, texts in self._told:
            found_texts = [one_text(value) for _, value in contents.get(key, [])]
            at = found_texts.index(texts[0]) if first is None and texts[0] in found_texts else first
            there = [] if at is None else found_texts[at : at + len(texts)]
            said = f"at offset {first} stands {', '.join(there) or 'nothing'}"
            require_that(there == texts, f"{', '.join(texts)} was acknowledged, and {said}")


def one_text(value: Json) -> str:
    """One text for a message; 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)


def _shown(value: bytes | None) -> str:
    text = value.decode(errors="replace") if value else "missing"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
