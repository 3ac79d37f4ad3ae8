"""Judges a program: each write of the store by the laws, and its answers by what is read at the end. No I/O.

Beside the laws, which a program of any kind must keep, stand two rules of who appends: what is full (R16), and
how large a head may be (R17).
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.headlog.records import HEAD
from leaderless.store.names import FORMAT, is_own
from leaderless.upkeep.laws.lawful import Observer

Answer = dict[str, Any]  # a line of a program, as JSON
Contents = Mapping[str, Sequence[Sequence[Json]]]  # of each key: offset and message


class Failed(Exception):
    """The program does what the specification forbids; the text says what."""


class Changes:
    """Judges each change of an object of one log, whose `format` is `made`.

    `broken`: what the first unlawful change was; "": none. It is not told of objects that are there already.
    """

    def __init__(self, made: bytes) -> None:
        self.broken: str = ""
        self._observer = Observer()
        self._held: dict[str, bytes] = {}
        self.changed(FORMAT, made, "the kit")

    def changed(self, key: str, value: bytes | None, request: str, wrong: str = "") -> None:
        """A request has made an object hold `value`; None: it has deleted it. `wrong`: what is beside that."""
        old = self._held.get(key, b"")
        try:
            require_that(not wrong, wrong)
            require_that(is_own(key), f"R1: {key} is no object of a log")
            self._observer.changed(key, value)
            if key == HEAD and value:
                _require_full_is_full(json.loads(old or b"null"), json.loads(value), len(value))
        except (InvariantBroken, Failed) as error:
            before, after = (
                brief(str(each or b"missing", "utf-8", "replace")) for each in (old, value)
            )
            said = f"{error}\n{request} changed {key}\nold: {before}\nnew: {after}"
            self.broken = self.broken or said
        self._held[key] = value or b""


def _require_full_is_full(old: Any, new: Any, size: int) -> None:
    register_bytes, seal_bytes, seal_entries, _, run_bytes, *_ = new["shape"]
    most = min(register_bytes // 2, register_bytes - run_bytes)
    require_that(size <= most, f"R17: a head of {size} bytes, of at most {most}")
    if old and new["base"] + len(new["entries"]) > old["base"] + len(old["entries"]):
        is_full = old["size"] >= seal_bytes or len(old["entries"]) >= seal_entries
        said = "is full, and lets go of nothing" if is_full else "is not full, and lets go of some"
        is_sealed = new["sealed"] > old["sealed"]
        require_that(is_full == is_sealed, f"R16: an append behind a head that {said}")


def require_that(holds: bool, text: str) -> None:
    """Raise `Failed` with the text where it does not hold."""
    if not holds:
        raise Failed(text)


class Told(NamedTuple):
    """A line, what was said of it, and how many lines had an answer when it was asked."""

    line: Answer
    answer: Answer
    before: int


def require_kept(told: Sequence[Told], contents: Contents) -> None:
    """All that was acknowledged is there, where it was told, and nothing more often than it was asked for.

    Raises `Failed`.
    """
    texts = {key: [one_text(value) for _, value in contents[key]] for key in contents}
    for key, records in contents.items():
        offsets = [offset for offset, _ in records]
        require_that(offsets == [*range(len(records))], f"key {key!r} has the offsets {offsets}")
    asked = {  # a batch that has a name is in the log once, however often it is asked for
        one_text(line.get("name", at)): [(line["key"], one_text(each)) for each in line["values"]]
        for at, (line, answer, _) in enumerate(told)
        if "values" in line and ("name" in line or answer.get("may_have_happened") is not False)
    }
    found = Counter((key, text) for key in texts for text in texts[key])
    more = found - Counter(each for batch in asked.values() for each in batch)
    require_that(
        not more,
        f"{'; '.join(map(str, more))}: it is in the log more often than it was appended, or though it was "
        "refused for good",
    )
    for line, answer, before in told:
        key = line.get("key", "")
        whole = texts.get(key, [])
        if "expected" in line and answer.get("may_have_happened") is not False:
            text, expected = one_text(line["values"][0]), line["expected"]
            require_that(
                text not in whole or whole.index(text) == expected,
                f"ConditionKept: {text} is in the log, and not at {expected}",
            )
        if "values" in line and "error" not in answer:
            batch = [one_text(each) for each in line["values"]]
            at = answer.get("offset", whole.index(batch[0]) if batch[0] in whole else 0)
            there = whole[at : at + len(batch)]
            require_that(
                there == batch,
                f"{', '.join(batch)} was acknowledged, and at offset {at} stands "
                f"{', '.join(there) or 'nothing'}",
            )
        elif "end" in answer:
            require_that(
                answer["end"] == len(whole),
                f"ClosedForEver: key {key!r} was closed at {answer['end']}, and has {len(whole)} records",
            )
        elif "records" in answer:
            records = answer["records"]
            known = [0] + [
                each.answer["offset"] + len(each.line["values"])
                for each in told[:before]
                if each.line.get("key") == key and "offset" in each.answer
            ]
            is_same = one_text(records) == one_text([*contents.get(key, [])][: len(records)])
            require_that(
                is_same and len(records) >= max(known),
                f"R43: a read of key {key!r} had of at least {max(known)} records that were there: "
                f"{one_text(records)}",
            )


def one_text(value: Any) -> str:
    """One text for a message; 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)


def brief(text: str, most: int = 400) -> str:
    """A text, or the beginning of a long one."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
