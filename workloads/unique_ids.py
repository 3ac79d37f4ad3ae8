"""unique-ids: every request gets an ID that no other request ever got.

    {"type": "generate"}  ->  {"type": "generate_ok", "id": 123}

An ID may be any JSON value. Nodes can ask each other, or a service, but then a partition stops them: the
challenge is `--availability total` under `--nemesis partition`.

In a history the value of a completed `generate` is its ID. The verdict is invalid when two requests got the
same ID. Unknown outcomes prove nothing, and there is no final phase. The result has

    attempted-count      requests that were made
    acknowledged-count   requests that got an ID
    duplicated-count     IDs that came more than once
    duplicated           the 48 commonest of these, with how often each came
    range                the least ID and the greatest

Numbers are ordered by size and texts by their letters. In a mix of kinds the order is by the JSON text; there
the real tool's checker gives up, and the verdict is unknown. An ID that is neither a text nor a whole number is
written in the result as its JSON text.

Whole numbers beyond 64 bits reach this bench as the nearest floating-point number, so two of them may look
equal. Where only such IDs came more than once the verdict is unknown. The real tool tells them apart.

The rules are those of Maelstrom's workload of this name and Jepsen's `unique-ids` checker.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from runs.edn import dumps
from runs.history import Op
from runs.keyword import keywords
from workloads.interface import (
    UNKNOWN,
    Draft,
    Finding,
    Judge,
    Result,
    Rpc,
    Setting,
    Steps,
    Workload,
    by_history,
)
from workloads.mixes import mix
from workloads.replies import ANY, require

_EXACT = 2**53  # floating-point numbers beyond are not exact
_SHOWN = 48
_WITNESSES = 4


class UniqueIdsClient:
    """Asks its node for IDs."""

    def __init__(self, node: str) -> None:
        self.node = node

    def invoke(self, _op: Op) -> Steps:
        request = {"type": "generate"}
        reply = yield Rpc(self.node, request)
        require(request, reply, id=ANY)
        return reply["id"]


def check(history: Sequence[Op]) -> Result:
    """Count IDs; the module's docstring describes the result."""
    asked = [op for op in history if op.f == "generate"]
    got = [op.value for op in asked if op.type == "ok"]
    values = {_text(value): value for value in got}
    duplicates = [(each, count) for each, count in Counter(map(_text, got)).items() if count > 1]
    duplicates.sort(key=lambda pair: -pair[1])
    certain = [text for text, _ in duplicates if not _is_rounded(values[text])]
    return keywords(
        valid=False if certain else UNKNOWN if duplicates else True,
        attempted_count=sum(op.type == "invoke" for op in asked),
        acknowledged_count=len(got),
        duplicated_count=len(duplicates),
        duplicated={_shown(values[text]): count for text, count in duplicates[:_SHOWN]},
        range=_range(list(values.values())),
    )


def explain(result: Mapping[Any, Any], history: Sequence[Op]) -> list[Finding]:
    """One finding for all IDs that came more than once."""
    if not result["duplicated"]:
        return []
    value, count = next(iter(result["duplicated"].items()))
    acknowledged = [op for op in history if op.f == "generate" and op.type == "ok"]
    witness = [op for op in acknowledged if _text(_shown(op.value)) == _text(value)]
    processes = ", ".join(str(op.process) for op in witness[:_WITNESSES])
    sentence = f"ID {dumps(value)} was given out {count} times; processes {processes} got it."
    invalid = result["valid?"] is False
    if not invalid:
        sentence += " Numbers beyond 64 bits are rounded here: make IDs of that size strings."
    found = result["duplicated-count"]
    return [Finding("duplicated", invalid, found, sentence, witness[:_WITNESSES])]


def figures(result: Mapping[Any, Any]) -> str:
    """How many IDs were given out, and between which two."""
    lowest, highest = map(dumps, result["range"])
    given, asked = result["acknowledged-count"], result["attempted-count"]
    return f"{given} IDs for {asked} requests, from {lowest} to {highest}"


def _text(value: Any) -> bytes:
    """Equal exactly where the JSON values are; in Python 1, 1.0 and true are equal."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _is_rounded(value: Any) -> bool:
    return isinstance(value, float) and abs(value) >= _EXACT


def _shown(value: Any) -> Any:
    """The value as a key of a map."""
    return value if type(value) in (int, str) else _text(value).decode()


def _range(values: list[Any]) -> list[Any]:
    """The least and the greatest."""
    if not values:
        return [None, None]
    is_numeric = all(type(value) in (int, float) for value in values)
    is_text = all(type(value) is str for value in values)
    ordered = sorted(values, key=None if is_numeric or is_text else _text)
    return [ordered[0], ordered[-1]]


def build(setting: Setting) -> Workload:
    """The workload for this run."""
    return Workload(
        generator=mix(setting.random("unique-ids"), lambda: Draft("generate")),
        open_client=UniqueIdsClient,
        judge=judge(),
        reusable=True,
    )


def judge() -> Judge:
    """Whether all IDs differ."""
    return Judge(by_history(check), explain, figures)
