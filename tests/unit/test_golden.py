"""The kit's golden logs, damaged ones and schemas say what is so."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft4Validator

from docs.schemas import FILE, schemas
from leaderless.conformance.golden import FOLDER, cases, is_text
from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.index import Index, index_of
from leaderless.core.headlog.records import head_of
from leaderless.upkeep.fsck import check
from leaderless.upkeep.laws import Laws
from leaderless.upkeep.laws.laws import has_content
from tests.golden import TEXT, Objects, files, said, stored
from tests.second import second_log

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]  # the objects of a log come at once
CASES = {case.name: case for case in cases()}
DAMAGED = [
    [cell.strip() for cell in line.split("|")]
    for line in (FOLDER.parent / "damaged.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
OF_FORM = {"RegistersReadable", "FormatKnown"}
UNSEEN = {  # by a schema: doubled names, what two numbers say together, depth, and what is no JSON
    "{",
    "DEEP",
    "NaN",
    "1e999",
    '"\\ud800"',
    '{"a": 1, "a": 2}',
    '"epoch": 2, "epoch": 2',
    '"cursor": 6, "listed"',
    '"parts": [], "parts"',
    '"us": 2, "us": 1',
    "4, 6, 2, 156",
    "8, 0, 211",
    "8, 3, 211",
    "8, 1099511627776, 211",
    '"eu": [0, 0, 1, 1]',
    '"eu": [0, 0, 1, 2, 2]',
    '"eu": [0, "m1", 0]',
    '"keys": {"a": [0,',
    "1, 0, 3, 0, 9, 8",
    '"replaced": [["run/4-5.parquet"',
}
OF_VIEWS = {"ViewIsPrefix", "PollContiguous", "ConditionKept"}  # no state of a store breaks them
WORDS = {"DEEP": "[" * 201 + "]" * 201, "LONG": "k" * 2000, "HUGE": "9" * 30}


def test_golden_logs_are_what_their_command_makes() -> None:
    assert {file.stem: file.read_text() for file in FOLDER.glob("*.json")} == files()


@pytest.mark.parametrize("name", CASES)
async def test_what_must_be_read_is_read(name: str) -> None:
    case = CASES[name]
    assert json.dumps(await said(case.store)) == json.dumps(
        {"reads": case.reads, "commits": case.commits}
    )
    assert (await check(await stored(case.store))).findings == []
    if not any(each.endswith(".parquet") for each in case.store):
        assert json.dumps(read_by_second(case.store)) == json.dumps(case.reads)


def read_by_second(objects: Objects) -> dict[str, Any]:
    """What the second program reads."""
    second = second_log.Log("reader")
    steps, outcome = second.refresh(), None
    try:
        while True:
            _, name = steps.send(outcome)
            held = objects.get(name)
            outcome = (second_log.OK, json.loads(held)) if held else (second_log.MISSING, None)
    except StopIteration:
        pass

    def at_hand(message: Any) -> Any:
        match message:
            case {"$data": [name, _, "json"]}:
                return json.loads(objects[f"data/{name}"])
            case {"$headers": [_, inner]}:
                return at_hand(inner)
        return message

    return {
        key: [*enumerate(map(at_hand, second.messages[key]))] for key in sorted(second.messages)
    }


def damaged(objects: Objects, name: str, old: str, new: str) -> Objects:
    """The objects after a change."""
    for word, text in WORDS.items():
        new = new.replace(word, text)
    if new == "(gone)":
        return {each: objects[each] for each in objects if each != name}
    text = objects[name].decode(errors="replace")
    assert old == "(all)" or old in text
    return objects | {name: (new if old == "(all)" else new.join(text.rsplit(old, 1))).encode()}


@pytest.mark.parametrize("row", DAMAGED, ids=lambda row: " ".join(row[:4]))
async def test_damage_is_found(row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)
    state, name, old, new, laws = row
    before = CASES[state].store
    after = damaged(before, name, old, new)
    of_state, _, of_change = laws.partition("change: ")
    found = {each.invariant for each in (await check(await stored(after))).findings}
    assert found == {*of_state.split()}
    if of_change:
        with pytest.raises(InvariantBroken, match=f"^{of_change}: "):
            lawful(before).changed(name, json.loads(after[name]) if name in after else None)


def test_the_schema_is_of_our_types_and_knows_what_is_an_object() -> None:
    assert json.loads(FILE.read_text()) == schemas()
    is_valid = Draft4Validator(schemas()).is_valid
    for case in CASES.values():
        assert is_valid(
            {each: json.loads(case.store[each]) for each in case.store if is_text(each)}
        )
    for state, name, old, new, laws in DAMAGED:
        after = damaged(CASES[state].store, name, old, new)
        if is_text(name) and name in after and new not in UNSEEN:
            of_form = bool({*laws.split()} & OF_FORM) or new == '-1, "json"'
            assert is_valid({name: json.loads(after[name])}) != of_form, (name, new)


def test_each_law_of_the_appendix_is_broken() -> None:
    laws = {law for *_, laws in DAMAGED for law in laws.removeprefix("change: ").split()}
    assert laws | OF_VIEWS == {*re.findall(r"`([A-Z]\w+)`", TEXT.partition("## Appendix")[2])}


def lawful(objects: Objects) -> Laws:
    """The laws of a log that has these objects."""
    laws = Laws()
    for name, text in objects.items():
        if not name.endswith(".parquet"):
            laws.objects[name] = json.loads(text) if has_content(name) else True
    if head := json.loads(objects.get("head", b"null")):
        vars(laws.head).update(head, shape=head_of(head).shape, tail=head["entries"])
    laws.index.index = index_of(laws.objects["compacted"]) if "compacted" in objects else Index()
    return laws
