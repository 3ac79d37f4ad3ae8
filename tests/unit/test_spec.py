"""The specification (docs/SPEC.md) says what the code does: its examples, tables and names are held to it."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from leaderless.conformance.golden import FOLDER
from leaderless.core.claims import claim_of
from leaderless.core.headlog.commits import committed_of
from leaderless.core.headlog.index import decode_part, index_of, part_of
from leaderless.core.headlog.records import head_of, segment_of, value_of_heading
from leaderless.core.shape import LOG_FORMAT, NAMES, Shape
from leaderless.groups.cursors import cursor_of
from leaderless.groups.members import Members, Membership, roster_of
from leaderless.hosting.place import new_shape
from leaderless.store.format import format_in, format_of
from leaderless.store.memory import MemoryStore
from leaderless.store.names import is_own, name_of, path_segment
from leaderless.store.sqlite import APPLICATION, SCHEMA
from leaderless.table.manifest import manifest_of
from leaderless.upkeep.staged import Plan, decision_of
from tests.golden import APART, EXAMPLES, TEXT
from tests.scripted import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.lawless]  # the objects of a log come at once
Form = Callable[[Any], Any]  # decodes what an object holds, and encodes it again


def of_format(value: Any) -> Any:
    shape = format_in(value)
    assert isinstance(shape, Shape)
    return json.loads(format_of(shape, value["made_by"]))


def of_head(value: Any) -> Any:
    head = head_of(value)
    return {**value_of_heading(head.heading), "entries": [each.value for each in head.tail]}


def of_segment(value: Any) -> Any:
    segment = segment_of(value)
    return {"deleted": True} if segment is None else segment.value


def of_plan(value: Any) -> Any:
    plan = decision_of(value)
    assert isinstance(plan, Plan)
    return {"format": LOG_FORMAT, **plan._asdict()}


FORMS: dict[str, Form] = {
    "format": of_format,
    "head": of_head,
    "segment": of_segment,
    "run": lambda value: decode_part(value).value,
    "page": lambda value: decode_part(value).value,
    "compacted": lambda value: index_of(value).value,
    "claim": lambda value: claim_of(value).value,
    "committed": lambda value: committed_of(value).value,
    "cursor": lambda value: {n: v for n, v in cursor_of(value)._asdict().items() if v != ""},
    "members": lambda value: roster_of(value).value,
    "plan": of_plan,
    "table": lambda value: manifest_of(value).value,
}


def form_of(name: str) -> Form:
    folder, *rest = name.split("/")
    return FORMS[next(each for each in rest if each in FORMS) if folder == "group" else folder]


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_what_our_programs_read_and_write(name: str) -> None:
    assert json.loads(json.dumps(form_of(name)(EXAMPLES[name]))) == EXAMPLES[name]
    assert name in APART or is_own(name)


def test_every_form_has_an_example() -> None:
    assert {id(form_of(name)) for name in EXAMPLES} == {*map(id, FORMS.values())}


@pytest.mark.parametrize("name", ["second_log", "second_file", "second_program", "second_node"])
def test_the_second_implementation_shares_nothing_with_the_package(name: str) -> None:
    folder = ROOT / "workloads/examples"
    own = {file.stem for file in folder.glob("*.py")}
    imports = re.findall(
        r"^(?:import|from) (\w+)", (folder / f"{name}.py").read_text(), re.MULTILINE
    )
    assert {*imports} <= own | sys.stdlib_module_names


def test_the_second_program_is_as_short_as_it_says() -> None:
    files = [ROOT / "workloads/examples" / f"{name}.py" for name in ("second_log", "second_file")]
    lines = sum(len(file.read_text().splitlines()) for file in files)
    assert f"`second_file.py`, {lines} lines with it" in TEXT
    assert lines <= 300


def test_names_are_escaped_as_it_says() -> None:
    for name, segment in {"a/b": "a=2Fb", "..": "=2E.", "": "="}.items():
        assert path_segment(name) == segment
        assert name_of(segment) == name
        assert not name or f"`{segment}`" in TEXT


def test_parts_of_pages_are_as_it_says() -> None:
    [said] = re.findall(r"`(\S+)` is in part (\d), `(\S+)` in (\d), `(\S+)` in (\d)", TEXT)
    for name, part in zip(said[::2], said[1::2], strict=True):
        assert part_of(name, 4) == int(part), name


async def test_a_digest_is_of_the_keys_as_it_says() -> None:
    nothing: Any = None  # is asked
    members = Members(MemoryStore(), Membership("billing", ("us", "eu", "us")), "m1", nothing)
    assert EXAMPLES["group/billing/members"]["members"]["m1"][2] == members._wanted


def test_the_shape_is_as_it_says() -> None:
    shape = new_shape(MemoryStore())
    for name in NAMES:
        [line] = [
            line for line in TEXT.splitlines() if re.match(rf"\| `[^|]*\b{name}`[^|]*\|", line)
        ]
        names, _, *defaults, _ = [cell.strip() for cell in line.strip("|").split("|")]
        ours, nodes = (re.findall(r"\w+", values) for values in defaults)
        place = re.findall(r"\w+", names).index(name)
        assert str(getattr(shape, name)) == ours[place], name
        assert nodes[place] in (str(getattr(Shape(), name)), "the", "root"), name
    assert [*EXAMPLES["format"]["shape"]] == [*shape.value]


def test_the_numbers_are_as_it_says() -> None:
    assert f"`application_id` {APPLICATION}" in TEXT
    assert f"has the format {LOG_FORMAT}" in TEXT
    tables = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \(\s*(.*?)\);", SCHEMA, re.DOTALL)
    [said] = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
    plain = " ".join(said.split())
    for name, columns in tables:
        assert f"{name} ({' '.join(columns.split())})" in plain


def test_each_rule_has_a_number_a_must_or_a_may_and_a_row() -> None:
    before, _, rest = TEXT.partition("## 17. Test matrix")
    matrix, _, after = rest.partition("\n## ")
    _, *parts = re.split(r"\*\*R(\d+)\*\*", before.partition("\n## ")[2] + after)
    numbers, rules = [int(number) for number in parts[::2]], parts[1::2]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert f"**R1** to **R{len(numbers)}**" in TEXT
    for number, rule in zip(numbers, rules, strict=True):
        assert re.search(r"\b(must|may)\b", rule.partition("\n\n")[0]), number
    rows = [line.split("|") for line in matrix.splitlines() if line.startswith("| R")]
    spans = [re.findall(r"R(\d+)(?: to R(\d+))?", row[1]) for row in rows]
    proved = [
        n for row in spans for first, last in row for n in range(int(first), int(last or first) + 1)
    ]
    assert {*proved} == {*numbers}
    for row in rows:
        named = [*re.findall(r"`(\S+\.\w+)`", row[3])]
        assert named or row[3].strip() == "kit"
        for name in named:
            assert (ROOT / name).exists() or (FOLDER.parent / name).exists(), name


def test_the_appendix_has_every_invariant() -> None:
    appendix = TEXT.partition("## Appendix")[2]
    said = {*re.findall(r"`([A-Z]\w+)`", appendix)}
    laws = [*(ROOT / "leaderless/upkeep/laws").glob("*.py"), ROOT / "leaderless/upkeep/fsck.py"]
    raised = {
        name
        for file in laws
        for name in re.findall(r'"([A-Z][a-z]+(?:[A-Z][a-z]+)+)"', file.read_text())
    }
    assert raised <= said
    assert said - raised == {"ViewIsPrefix", "PollContiguous", "ConditionKept"}
    core = "".join(file.read_text() for file in (ROOT / "leaderless/core").rglob("*.py"))
    assert all(f"{name}:" in core for name in said - raised)
