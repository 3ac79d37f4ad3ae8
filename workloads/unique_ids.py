"""unique-ids: every request gets an ID that no other request ever got.

    {"type": "generate"}  ->  {"type": "generate_ok", "id": 123}

An ID may be any JSON value, but IDs must have an order (below). Nodes can ask each other, or a service, but
then a partition stops them: the challenge is `--availability total` under `--nemesis partition`.

In a history the value of a completed `generate` is its ID. The verdict is invalid when two requests got the
same ID. Unknown outcomes prove nothing, and there is no final phase. The result has

    attempted-count      requests that were made
    acknowledged-count   requests that got an ID
    duplicated-count     IDs that came more than once
    duplicated           the 48 commonest of these, with how often each came
    range                the least ID and the greatest
    incomparable         two IDs without an order, where there are any

Numbers are ordered by size, texts by their letters, false comes before true, and null before everything. A
shorter list comes before a longer one, and lists of one length are compared place by place. Maps have no order,
and IDs of two kinds have none. Where the real tool's checker looks for one it gives up, so without a duplicate
the verdict is unknown.

An ID that is neither a text nor a whole number is written in the result as its JSON text.

Whole numbers beyond 64 bits reach this bench as the nearest floating-point number, so two of them may look
equal. Where only such IDs came more than once the verdict is unknown. The real tool tells them apart.

The rules are those of Maelstrom's workload of this name and Jepsen's `unique-ids` checker.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cmp_to_key, partial
from typing import Any

import orjson

from runs.edn import dumps
from runs.facts import grouped, spaced
from runs.history import Op, keywords
from workloads.interface import (
    UNKNOWN,
    Draft,
    Finding,
    Judge,
    Result,
    Setting,
    Steps,
    Workload,
    by_history,
)
from workloads.mixes import mix
from workloads.replies import ANY, Stateless, ask

_EXACT = 2**53  # floating-point numbers beyond are not exact
_SHOWN = 48
_WITNESSES = 4


def _generate(node: str, _op: Op) -> Steps:
    return (yield from ask(node, {"type": "generate"}, id=ANY))["id"]


def check(history: Sequence[Op]) -> Result:
    """Count IDs; the module's docstring describes the result."""
    asked = [op for op in history if op.f == "generate"]
    got = [op.value for op in asked if op.type == "ok"]
    values = {_text(value): value for value in got}
    counts = Counter(map(_text, got)).most_common()
    duplicates = [(each, count) for each, count in counts if count > 1]
    rounded = {t for t, each in values.items() if isinstance(each, float) and abs(each) >= _EXACT}
    certain = [text for text, _ in duplicates if text not in rounded]
    extremes, incomparable = _range(list(values.values()))
    result = keywords(
        valid=False if certain else UNKNOWN if duplicates or incomparable else True,
        attempted_count=sum(op.type == "invoke" for op in asked),
        acknowledged_count=len(got),
        duplicated_count=len(duplicates),
        duplicated={_shown(values[text]): count for text, count in duplicates[:_SHOWN]},
        range=extremes,
    )
    return {**result, **keywords(incomparable=incomparable)} if incomparable else result


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for all IDs that came more than once, and one for IDs that cannot be compared."""
    return [*_duplicated(result, history), *_incomparable(result, history)]


def _incomparable(result: Mapping[Any, Any], history: Sequence[Op]) -> Iterator[Finding]:
    if "incomparable" not in result:
        return
    texts = set(map(_text, result["incomparable"]))
    given = grouped((_text(op.value), op) for op in _acknowledged(history))
    shown = {text.decode(): ops[0] for text, ops in given.items() if text in texts}
    sentence = (
        f"Nobody can say which of the IDs {' and '.join(shown)} comes first, and the real tool does not judge"
        " such a run. Make all IDs numbers, or all of them texts."
    )
    yield Finding("incomparable", False, 1, sentence, [*shown.values()], undecided=True)


def _acknowledged(history: Sequence[Op]) -> list[Op]:
    return [op for op in history if op.f == "generate" and op.type == "ok"]


def _duplicated(result: Mapping[Any, Any], history: Sequence[Op]) -> Iterator[Finding]:
    if not result["duplicated"]:
        return
    value, count = next(iter(result["duplicated"].items()))
    witness = [op for op in _acknowledged(history) if _text(_shown(op.value)) == _text(value)]
    processes = ", ".join(str(op.process) for op in witness[:_WITNESSES])
    sentence = f"ID {dumps(value)} was given out {count} times; processes {processes} got it."
    invalid = result["valid?"] is False
    if type(value) is int and abs(value) >= _EXACT and value == int(Decimal(repr(float(value)))):
        sentence += (
            " It is beyond 2^53, where JavaScript's numbers are rounded: make such IDs strings."
        )
    if not invalid:
        sentence += " Numbers beyond 64 bits are rounded here: make IDs of that size strings."
    found = result["duplicated-count"]
    yield Finding(
        "duplicated", invalid, found, sentence, witness[:_WITNESSES], undecided=not invalid
    )


def figures(result: Mapping[Any, Any]) -> str:
    """How many IDs were given out, and between which two."""
    lowest, highest = map(dumps, result["range"])
    given, asked = result["acknowledged-count"], result["attempted-count"]
    return f"{spaced(given)} IDs for {spaced(asked)} requests, from {lowest} to {highest}"


def _text(value: Any) -> bytes:
    """Equal exactly where the JSON values are; in Python 1, 1.0 and true are equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _shown(value: Any) -> Any:
    """The value as a key of a map."""
    return value if type(value) in (int, str) else _text(value).decode()


class _Incomparable(Exception):
    """These two values have no order."""


def _range(values: list[Any]) -> tuple[list[Any], list[Any]]:
    """The least and the greatest, by the JSON text if there is no order; and then two values that show this."""
    if not values:
        return [None, None], []
    try:
        order = cmp_to_key(_ordered)
        return [min(values, key=order), max(values, key=order)], []
    except _Incomparable as error:
        return [min(values, key=_text), max(values, key=_text)], list(error.args)


def _ordered(one: Any, other: Any) -> int:
    """Compare two values. Raises `_Incomparable` with both, where they have no order."""
    try:
        return _compare(one, other)
    except TypeError:
        raise _Incomparable(one, other) from None


def _compare(one: Any, other: Any) -> int:
    """Negative, 0 or positive, as Clojure's `compare` says. Raises `TypeError` where it has no order."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if _kind(one) is not _kind(other):
        raise TypeError
    if isinstance(one, list):
        if len(one) == len(other):
            steps = (_compare(*pair) for pair in zip(one, other, strict=True))
            return next(filter(None, steps), 0)
        one, other = len(one), len(other)
    return int(one > other) - int(one < other)  # of two maps: TypeError


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


JUDGE = Judge(by_history(check), explain, figures)


def build(setting: Setting) -> Workload:
    """The workload for this run."""
    return Workload(
        generator=mix(setting.random("unique-ids"), lambda: Draft("generate")),
        open_client=partial(Stateless, perform=_generate),
        judge=JUDGE,
        reusable=True,
    )
