"""The house fits its budget (budget.toml), and each raise says whose need pays for it."""

import re
import tomllib
from datetime import date

from tests.budget import FILE, lowered, measured

BUDGET = tomllib.loads(FILE.read_text(encoding="utf-8"))


def test_the_house_fits() -> None:
    over = [
        f"{part}: {name} has {now}, at most {BUDGET[part].get(name, 0)}"
        for part, numbers in measured().items()
        for name, now in numbers.items()
        if now > BUDGET[part].get(name, 0)
    ]
    assert not over, "lower something else, or raise it in budget.toml and say whose need pays"


def test_each_raise_has_a_date_and_says_whose_need_pays() -> None:
    for line in BUDGET["raised"]:
        day, _, need = line.partition(" ")
        assert date.fromisoformat(day)
        assert re.search(r": .{20}", need), line


def test_numbers_only_become_lower() -> None:
    before = {"words": {"docs": 10, "README.md": 5, "gone": 3}}
    now = {"words": {"docs": 12, "README.md": 4, "new": 2}}
    assert lowered(before, now) == {"words": {"README.md": 4, "docs": 10, "new": 2}}
