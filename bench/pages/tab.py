"""A bench in a browser tab: a folder of files, which simulates Python nodes on the kit with nothing installed.

    index.html, tab.js   an editor with the nodes of the chapters, and what the simulator answers
    worker.js            starts CPython in WebAssembly, and asks `simulation.in_tab`
    bench.zip            the sources of the bench, and libraries that are Python alone
    pyodide/             CPython, as the npm package `pyodide` has it

The page fetches these files and nothing else, and its policy lets it reach no other place.
"""

import json
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from bench.pages.render import asset, page, prose
from runs.house import EXAMPLES, HOUSE

VERSION = "314.0.7"  # of Pyodide, with which this is tested
POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline';"
    " script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; base-uri 'none'; form-action 'none'"
)
TAB, INDEX = "tab", "index.html"  # where a store has it
_SCRIPTS, _ARCHIVE = ("tab.js", "worker.js"), "bench.zip"
CHAPTERS = "docs/learn/[0-9]-*.md"
NEEDED = ("pyodide.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
_COPIED = (*NEEDED, "pyodide.asm.mjs", "pyodide.asm.js")  # one of the last two, by version
FILES = {INDEX, *_SCRIPTS, _ARCHIVE, *(f"pyodide/{name}" for name in _COPIED)}
_ROOMS = ("bench", "runs", "simulation", "workloads")
_KINDS = (".j2", ".py", ".toml")
_LIBRARIES = ("click", "jinja2", "markupsafe", "rich")
_GLOSSARY = "docs/bench/anomalies.md"
_COMMAND = re.compile(r"^ {4}(\./maelstrom (?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Chapter:
    """A challenge: what it asks as HTML, the options of its runs, a node that fails, and one that passes."""

    title: str
    question: str
    flags: str
    failing: Path
    passing: Path


def chapters() -> list[Chapter]:
    """The chapters of docs/learn, as their texts have them."""
    return [_chapter(file) for file in sorted(HOUSE.glob(CHAPTERS))]


def _chapter(file: Path) -> Chapter:
    text = _text(file)
    commands = [shlex.split(each.replace("\\\n", "")) for each in _COMMAND.findall(text)]
    test = next(each for each in commands if each[1] == "test")
    grade = next(each for each in commands if each[1] == "glomers")
    at = test.index("--bin")
    asked = text.partition("**The question.**")[2].partition("**A node that fails**")[0]
    return Chapter(
        text.partition("\n")[0].removeprefix("# Challenge "),
        "".join(f"<p>{prose(each)}</p>" for each in asked.strip().split("\n\n")),
        shlex.join([*test[2:at], *test[at + 2 :]]),
        HOUSE / test[at + 1],
        HOUSE / grade[grade.index("--bin") + 1],
    )


def write_tab(folder: Path, pyodide: Path) -> None:
    """Write the folder of the page; `pyodide` is that of the npm package.

    Raises:
        click.UsageError: a file of Pyodide is missing.
    """
    source = next(
        (each for each in (pyodide, pyodide / "package") if (each / NEEDED[0]).is_file()), pyodide
    )
    if missing := [name for name in NEEDED if not (source / name).is_file()]:
        raise click.UsageError(
            f"--pyodide: {source} has no {missing[0]}. Give the folder of the npm package: npm pack"
            f" pyodide@{VERSION}, tar xzf pyodide-{VERSION}.tgz, and then --pyodide package."
        )
    (folder / "pyodide").mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / "pyodide" / name)
    told = chapters()
    with zipfile.ZipFile(folder / _ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in _sources(told):
            archive.write(file, name)
    for name in _SCRIPTS:
        (folder / name).write_text(asset(name), encoding="utf-8")
    nodes = [
        {
            "flags": each.flags,
            "nodes": {"fails": _text(each.failing), "passes": _text(each.passing)},
        }
        for each in told
    ]
    document = json.dumps(nodes).replace("<", "\\u003c")  # it stands inside a script element
    its = page("tab.html.j2", served=False, chapters=told, policy=POLICY, document=document)
    (folder / INDEX).write_text(its, encoding="utf-8")


def _sources(told: list[Chapter]) -> Iterator[tuple[str, Path]]:
    """The files of the archive: rooms, libraries, and the modules that nodes of the chapters import."""
    places = [HOUSE / name for name in _ROOMS]
    for name in _LIBRARIES:
        spec = find_spec(name)
        assert spec
        places += map(Path, spec.submodule_search_locations or ())
    yield from (
        (f"{place.name}/{file.relative_to(place).as_posix()}", file)
        for place in places
        for file in sorted(place.rglob("*"))
        if file.suffix in _KINDS
    )
    yield _GLOSSARY, HOUSE / _GLOSSARY
    nodes = {file.name: file for each in told for file in (each.failing, each.passing)}
    kit = EXAMPLES / "maelstrom_node.py"
    yield from ((f"node/{file.name}", file) for file in (kit, *nodes.values()))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
