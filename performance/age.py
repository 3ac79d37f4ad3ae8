"""Whether figures are of the code as it is: each page that a program of ours measured says it in one line.

    python -m performance.age     # part of `make tidy`

A fresh page carries a digest of the statements that it measured; comments, docstrings and layout do not count.
When they change, this program replaces the digest by the words that the code is newer.
"""

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from bench.sweep.making import commit_here

ROOT = Path(__file__).parents[1]
NEWER = "Measured at commit {}; the code is newer."
LINE = re.compile(
    r"^Measured at commit ([\w., -]+)(?:\. <!-- (.+) (\w+) -->|; the code is newer\.)$",
    re.MULTILINE,
)


def statements(paths: Sequence[str]) -> str:
    """A digest of the statements in these files and folders, the same in every version of Python.

    Raises `ValueError` for a path without a module of Python.
    """
    found = blake2b(digest_size=6)
    for path in paths:
        files = sorted((ROOT / path).rglob("*.py")) or [*ROOT.glob(path)]
        if not files:
            raise ValueError(f"{path} is measured, and has no module: name what is measured now")
        for file in files:
            found.update(repr([*_nodes(ast.parse(file.read_text(encoding="utf-8")))]).encode())
    return found.hexdigest()


def _nodes(node: ast.AST) -> Iterator[object]:
    """Kinds, names and constants; what a version of Python adds to a node is empty, and left out."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)):
                    yield from (name, *_nodes(each))
            elif each is not None:
                yield each


def line(paths: Sequence[str], commits: Collection[str] = ()) -> str:
    """The line of a page that is made now, of runs at these commits: without them of the code as it is."""
    here = commit_here()
    if {each.removesuffix("-dirty") for each in commits} - {here.removesuffix("-dirty")}:
        return NEWER.format(", ".join(commits))
    return f"Measured at commit {here}. <!-- {' '.join(paths)} {statements(paths)} -->"


def is_true(said: re.Match[str]) -> bool:
    """Whether the line of a page holds: it says that the code is newer, or has its digest."""
    paths = (said[2] or "").split()
    there = all((ROOT / path).exists() for path in paths)
    return not paths or (there and statements(paths) == said[3])


def main() -> None:
    """Let each page whose digest is another's say that the code is newer."""
    for page in sorted(Path(ROOT, "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        now = LINE.sub(lambda said: said[0] if is_true(said) else NEWER.format(said[1]), text)
        if now != text:
            page.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    main()
