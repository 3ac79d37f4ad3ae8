"""What may not come back: doubled names, definitions that only tests use, short files, long functions.

TigerBeetle calls its test of this kind *tidy*. import-linter checks which way imports go.
"""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from leaderless.table.pieces import rare_collections
from tests.programs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]
LINES_MIN, LINES_MAX = 40, 70  # of a file of `leaderless`; of a function

NAMES_TWICE = {
    "main": "each command line has one",
    "ack": "a command, and what it calls",
    "bench": "a command, and what it calls",
}
SHORT_FILES = {
    "leaderless/hosting/surroundings.py": "a simulation has its own in place of all of it",
    "leaderless/maelstrom.py": "it starts what is no module of the package",
    "leaderless/store/options.py": "all stores import it, and it imports none",
}
LONG_FUNCTIONS = {
    "leaderless/runtime/command_line.py:_parser": "a list of options",
    "bench/pages/app.py:create_app": "a list of pages",
}
# What uses definitions beside the packages: programs, public names, and notebooks.
USERS = (
    "node.py",
    "bench/pages/static/worker.js",
    "tests/mutants/explorer.py",
    "docs/log/interface.md",
    "analysis/notebooks/*.ipynb",
)
# A class with another foreign base, or a function with another decorator, is used by whatever that belongs to.
BASES = {"NamedTuple", "Enum", "Exception", "Generic", "Protocol", "Store", "str", "tuple"}
DECORATORS = {"asynccontextmanager", "cache", "classmethod", "contextmanager", "dataclass"}
DECORATORS |= {"lru_cache", "property", "staticmethod"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@cache
def modules() -> dict[str, ast.Module]:
    """The files of the packages, by their paths from the root."""
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    with rare_collections():
        return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in files}


def defined(body: Iterable[ast.stmt]) -> Iterator[Definition]:
    return (node for node in body if isinstance(node, Definition))


def name_of(node: ast.expr) -> str:
    """`a.b` of `a.b`, of `a.b(...)` and of `a.b[...]`."""
    return re.split(r"[(\[]", ast.unparse(node))[0]


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names that code refers to, also as strings, such as "module:name"."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(name) | ast.Attribute(attr=name) | ast.alias(name):
                yield name
            case ast.Constant(str(text)) if re.fullmatch(r"[\w.:]+", text):
                yield from re.findall(r"\w+", text)


def test_no_public_name_stands_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in modules().items():
        if path.startswith("leaderless/"):
            for node in defined(tree.body):
                places[node.name].append(path)
    twice = {
        name: found
        for name, found in places.items()
        if len({*found}) > 1 and not name.startswith("_") and name not in NAMES_TWICE
    }
    assert not twice, "give each the term of its field"


def test_no_definition_is_for_tests_alone() -> None:
    used = Counter(name for tree in modules().values() for name in names_in(tree))
    for pattern in USERS:
        for file in ROOT.glob(pattern):
            used.update(re.findall(r"\w+", file.read_text()))
    classes = {each.name for tree in modules().values() for each in defined(tree.body)}
    unused = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in modules().items()
        for node in candidates(tree, classes | BASES)
        if used[node.name] < 3  # the rest of a recursive one is not looked for
        and used[node.name] <= sum(name == node.name for name in names_in(node))
    ]
    assert not unused, "delete them, or move them to the tests"


def candidates(tree: ast.Module, ours: set[str]) -> Iterator[Definition]:
    """Definitions of a module, and public methods, that nothing but a name can lead to."""
    for node in defined(tree.body):
        found = [node]
        if isinstance(node, ast.ClassDef) and {*map(name_of, node.bases)} <= ours:
            found += [each for each in defined(node.body) if not each.name.startswith("_")]
        for each in found:
            if {*map(name_of, each.decorator_list)} <= DECORATORS and each.name[:2] != "__":
                yield each


def test_no_file_is_short() -> None:
    short = [
        path
        for path in modules()
        if path.startswith("leaderless/") and not path.endswith("__.py")
        if len((ROOT / path).read_text().splitlines()) < LINES_MIN and path not in SHORT_FILES
    ]
    assert not short, "put them where they belong"


def test_no_function_is_long() -> None:
    long = [
        f"{path}:{node.name}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, Function) and (node.end_lineno or 0) - node.lineno >= LINES_MAX
    ]
    assert not {*long} - {*LONG_FUNCTIONS}, "each thought is a function"
