"""How large the house is, held against budget.toml: `make tidy` writes the numbers that have become lower.

A statement is one of Python's grammar without docstrings, so layout and comments change nothing. A word stands
between spaces.
"""

import ast
import re
import subprocess
import tomllib
from collections import Counter

from tests.programs import ROOT, need

FILE = ROOT / "budget.toml"
INNER = ("leaderless", "docs")  # a folder of theirs is a room
UNTITLED = re.compile(r"^# -{10,}\s*$", re.MULTILINE)
Numbers = dict[str, dict[str, int]]


def tracked() -> list[str]:
    """The files that git knows."""
    done = subprocess.run([need("git"), "ls-files"], cwd=ROOT, capture_output=True, check=True)
    return [path for path in done.stdout.decode().splitlines() if (ROOT / path).is_file()]


def room(path: str) -> str:
    """Where a file is counted: `leaderless/store`, `docs/learn`, `bench`; a file of the root alone."""
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] in INNER and len(parts) > 2 else 1])


def statements(tree: ast.AST) -> int:
    """The statements of a module, its docstrings left out."""
    return sum(
        isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


def measured() -> Numbers:
    """What budget.toml bounds."""
    code, words = Counter[str](), Counter[str]()
    longest = rules = 0
    paths = tracked()
    for path in paths:
        if path.endswith(".py"):
            text = (ROOT / path).read_text(encoding="utf-8")
            code[room(path)] += statements(ast.parse(text))
            longest = max(longest, text.count("\n"))
            rules += len(UNTITLED.findall(text))
        elif path.endswith(".md"):
            words[room(path)] += len((ROOT / path).read_text(encoding="utf-8").split())
    players = [path for path in paths if re.fullmatch(r"tests/datadriven/[a-z_]+\.py", path)]
    house = {
        "statements outside tests": code.total() - code["tests"],
        "words": words.total(),
        "languages of transcripts": len(players) - 2,  # one module runs them all, one is their test
        "tracked files": len(paths),
        "lines of the longest file": longest,
        "untitled rules": rules,
    }
    return {"house": house, "statements": dict(code), "words": dict(words)}


def lowered(budget: Numbers, found: Numbers) -> Numbers:
    """The budget with what is lower now; a room that is gone leaves it, and a new one enters it."""
    return {
        part: {name: min(now, budget[part].get(name, now)) for name, now in sorted(numbers.items())}
        for part, numbers in found.items()
    }


def main() -> None:
    """Write the numbers that have become lower, and leave the text before them as it is."""
    text = FILE.read_text(encoding="utf-8")
    lines = [text[: text.index("[house]")].rstrip()]
    for part, numbers in lowered(tomllib.loads(text), measured()).items():
        lines += ["", f"[{part}]", *(f'"{name}" = {most}' for name, most in numbers.items())]
    FILE.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
