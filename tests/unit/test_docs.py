"""Documents say only what is there: links, commands, targets, figures; and they can be read in a terminal.

No network: addresses elsewhere are not followed.
"""

import ast
import inspect
import pydoc
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import click
import pytest

import leaderless
import workloads
from analysis.cli import main as analysis
from bench.commands.main import COMMANDS, LazyGroup
from docs.interface import MODULES, PAGE
from docs.interface import page as interface
from leaderless import open_log, open_log_sync
from leaderless.errors import StaleToken
from performance.age import LINE as AGE
from performance.age import is_true
from tests.programs import ROOT
from workloads.kafka.checker.cases import CYCLES
from workloads.kafka.checker.compose import ALLOWED, ALLOWED_WITH_WW, AT_THE_END
from workloads.kafka.checker.explain import CAUSES, SENTENCES
from workloads.lin_kv import NONLINEARIZABLE
from workloads.txn.family import SENTENCES as TXN_SENTENCES

COLUMNS = 100  # of a line of code
LINE = 120  # of a line of prose
LINES = 200
LINES_OF_SPEC = 701  # it is looked up
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "results/README.md")
    if path.is_file()
)
DOCS = [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
CONTEXT = click.Context(LazyGroup())
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ROOMS = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "results"]
PATH = re.compile(rf"(?:{'|'.join(ROOMS)})/[\w./-]*")
MAELSTROM = re.compile(r"\./maelstrom ([a-z]+)\b(?= |`|$)")
MAKE = re.compile(r"(?<![\w-])make ([a-z][a-z-]*)(?=`|\s{2,}|$| [A-Z]+=)")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_lines(page: Path) -> Iterator[str]:
    """The lines of fenced and indented blocks."""
    fenced, before = False, ""
    in_block = False
    for line in page.read_text().splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line
        else:
            in_block = line.startswith("    ") and (in_block or not before.strip())
            if in_block:
                yield line
        before = line


def commands(page: Path) -> Iterator[str]:
    """Lines of code, and code within sentences, unless that is of an earlier commit."""
    yield from code_lines(page)
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    yield from re.findall(r"`([^`]+)`(?!\sof\scommit\s)", prose)


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_names_of_files_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{target.name} has no heading #{anchor}"
    for text in re.findall(r"`([^`\n]+)`", page.read_text()):
        if PATH.fullmatch(text):
            assert (ROOT / text).exists(), text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_fit_a_terminal(page: Path) -> None:
    wide = [line for line in code_lines(page) if len(line) > COLUMNS]
    assert not wide, "code lines beyond 100 columns"
    prose = [
        line
        for line in page.read_text().splitlines()
        if len(line) > LINE and not line.startswith("|") and not LINK.search(line)
    ]
    assert not prose, "lines beyond 120 columns"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_are_at_most_200_lines(page: Path) -> None:
    """Mutants that a program lists do not count: nobody reads them from the first to the last."""
    lines = page.read_text().splitlines()
    most = LINES_OF_SPEC if page.name == "SPEC.md" else LINES
    assert sum(not line.startswith("| `") or page.name != "mutants.md" for line in lines) <= most


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = {(ROOT / "docs" / link).resolve() for link in LINK.findall(index)}
    missing = [
        name(page)
        for page in DOCS
        if page not in listed and page.parent.name != "decisions" and page.name != "README.md"
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, flags=re.MULTILINE))
    for text in commands(page):
        assert set(MAKE.findall(text)) <= targets, text
        assert set(MAELSTROM.findall(text)) <= set(COMMANDS), text
        for module in re.findall(r"python -m ([a-z0-9_.]+)", text):
            path = ROOT / module.replace(".", "/")
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), text
        for script in re.findall(
            r"(?:python |^\s*)((?:scripts|performance|sweeps)/[\w./-]+)", text
        ):
            assert (ROOT / script).exists(), text


def parse(line: str) -> None:
    """Let the command line of a program of ours be parsed; raise `click.UsageError` for what it refuses."""
    words = shlex.split(line, comments=True)
    if words[0] == "./maelstrom":
        command, *arguments = words[1:]
        found = LazyGroup().get_command(CONTEXT, command)
    else:
        command, *arguments = words[3:]
        found = analysis.commands.get(command)
    assert found, line
    try:
        found.make_context(command, list(arguments))
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # a run that the reader has made
            raise
    except click.exceptions.Exit:  # --help
        assert "--help" in arguments


OURS = ("./maelstrom ", ".venv/bin/python -m analysis ")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_figures_are_of_this_code_or_say_that_it_is_newer(page: Path) -> None:
    """A page of figures that no program of ours makes says beside each command of which commit it is."""
    text = page.read_text()
    said = AGE.search(text)
    if page.parent.name == "performance" and page.name != "README.md":
        assert "Generated, never" not in text or [*code_lines(page)], "which program makes it?"
        assert said or " of commit " in " ".join(text.split()), "of which commit is it?"
    assert not said or is_true(said), "the code has changed: `make tidy`, or measure again"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_take_the_options_that_are_printed(page: Path) -> None:
    for line in (
        "\n".join(line.strip() for line in code_lines(page)).replace("\\\n", "").splitlines()
    ):
        if line.startswith(OURS) and not re.search(r"[$<]| \.\.\.", line):
            parse(line.replace("analysis --help", "analysis check --help"))


SOURCES = [
    path
    for room in (
        "analysis",
        "bench",
        "runs",
        "simulation",
        "workloads",
    )
    for path in (ROOT / room).rglob("*.py")
]
PRINTED = re.compile(r"[`\"] *((?:\./maelstrom|(?:\.venv/bin/)?python -m analysis) [^`\n\"]*)[`\"]")


def test_commands_that_programs_print_are_taken_too() -> None:
    codes = (
        re.sub(
            r'""".*?"""',
            "",
            each.read_text().replace("{MAELSTROM}", "./maelstrom"),
            flags=re.DOTALL,
        )
        for each in SOURCES
    )
    found = [line for code in codes for line in PRINTED.findall(code)]
    assert len(found) > 4
    for line in found:
        assert "python -m" not in line or line.startswith(".venv/bin/"), line
        if " ..." not in line and "<" not in line and len(line.split()) > 2:
            parse(re.sub(r"\{[^{}]*\}", "X", line))


def test_every_workload_is_described_and_every_anomaly_explained() -> None:
    text = (ROOT / "docs" / "bench" / "workloads.md").read_text()
    assert not [each for each in workloads.NAMES if f"| `{each}` |" not in text]
    explained = anchors(ROOT / "docs" / "bench" / "anomalies.md")
    names = {*SENTENCES, *CYCLES, *CAUSES, *ALLOWED, *ALLOWED_WITH_WW, *AT_THE_END, NONLINEARIZABLE}
    names |= {*TXN_SENTENCES, "G-single-item", "G-nonadjacent-item", "G2-item"}
    for module in (ROOT / "workloads").rglob("*.py"):
        names.update(re.findall(r"\bFinding\(\s*\"([\w-]+)\"", module.read_text()))
    assert {each.lower() for each in names} <= explained


RUN_BY = {  # the pages with programs, and the tests that run them as printed
    "README.md": "tests/unit/test_docs.py",
    "docs/log/groups.md": "tests/unit/test_docs.py",
    "docs/log/into-a-database.md": "tests/unit/test_docs.py",
    "docs/analysis/notebooks.md": "tests/analysis/test_query_the_lake.py",
    "docs/log/storage.md": "tests/unit/test_docs.py",
    "docs/log/table-in-spark.md": "tests/analysis/test_table_in_spark.py",
    "docs/log/table.md": "tests/unit/test_table.py",
}


def programs_of(page: Path) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_a_test_runs_the_programs_of_every_page() -> None:
    assert {name(page) for page in PAGES if programs_of(page)} == {*RUN_BY}
    for page, test in RUN_BY.items():
        assert Path(page).name in (ROOT / test).read_text()


def test_the_programs_of_the_log_run_as_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file in place of the bucket; who charges ends the loop after two records."""
    propagate = SimpleNamespace(inject=lambda into: into.update(traceparent="00-1"), extract=dict)
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(propagate=propagate))
    url = f"sqlite:///{tmp_path / 'orders.db'}"
    charged: list[object] = []

    async def charge(value: object) -> None:
        charged.append(value)
        if len(charged) == 2:
            raise EOFError

    names: dict[str, Any] = {"charge": charge}
    for page in ("README.md", "docs/log/storage.md", "docs/log/groups.md"):
        for program in programs_of(ROOT / page):
            exec(program.replace("s3://my-bucket/orders", url), names)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[Record(key='eu', offset=0, value={'item': 7}, time_ms=1")
    assert second == "1 {'item': 7}"
    with pytest.raises(EOFError):
        anyio.run(names["bill"], url)

    async def traced() -> object:
        async with open_log(url) as log:
            offset = await names["append_traced"](log, "eu", 1)
            [record] = await log.read("eu", offset)
            return names["context_of"](record)

    async def conditional() -> list[object]:
        async with open_log(url) as log, open_log(url) as other:
            await log.append("account", 5)
            withdrawn = [await names["withdraw"](each, "account", 2) for each in [log, other] * 2]
            token = await names["take_over"](log, "account")
            later = await names["take_over"](other, "account")
            with pytest.raises(StaleToken):
                await log.append("account", "late", token=token)
            return [*withdrawn, token, later, await other.append("account", "new", token=later)]

    assert anyio.run(conditional) == [True, True, False, False, 3, 4, 5]
    assert anyio.run(traced) == {"traceparent": "00-1"}
    assert charged == [{"item": 7}, {"item": 7}]


# The program of a page in a process that dies before its statement number N, for each N, and begins again.
DIES = """
import os, signal, sqlite3, sys
from itertools import count

sys.path.insert(0, sys.argv[1])
from leaderless import open_log_sync

url, program = sys.argv[2:]
exec(program)

def run(file, dies=None):
    if child := os.fork():
        return os.waitpid(child, 0)[1] == 0
    statements = count()
    with open_log_sync(url) as log:
        database = sqlite3.connect(file)
        database.executescript(TABLES)
        database.set_trace_callback(
            lambda _: next(statements) == dies and os.kill(os.getpid(), signal.SIGKILL)
        )
        while book(log, database, "k", limit=2):
            pass
    os._exit(0)

for number in count():
    lived = run(f"{number}.db", number)
    assert run(f"{number}.db")
    print(lived, *sqlite3.connect(f"{number}.db").execute("SELECT * FROM balance").fetchone())
    if lived:
        break
"""


@pytest.mark.process
def test_into_a_database_exactly_once_through_a_death_before_each_statement(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    [program] = programs_of(ROOT / "docs/log/into-a-database.md")
    names: dict[str, Any] = {}
    exec(program, names)
    with open_log_sync(url) as log:
        log.append_many("k", [{"account": "a", "amount": 10**n} for n in range(3)])
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(ROOT), url, program],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    *died, last = done.stdout.splitlines()
    assert len(died) > 12  # among them BEGIN and COMMIT, twice
    assert {*died, last} == {"False a 111", "True a 111"}

    with open_log_sync(url) as log:
        one, other = (sqlite3.connect(tmp_path / "shared.db") for _ in range(2))
        one.executescript(names["TABLES"])

        def read_and_be_overtaken(*given: Any) -> object:
            found = log.read(*given)
            assert names["book"](log, other, "k", 1) == 1
            return found

        overtaken = SimpleNamespace(read=read_and_be_overtaken)
        assert names["book"](overtaken, one, "k") == 0
        assert names["book"](log, one, "k") == 2
        assert one.execute("SELECT * FROM balance").fetchall() == [("a", 111)]
        one.close()
        other.close()


CELL = re.compile(r"([\d.]+) · ([\d.]+) ms · ([\d.]+)/s(, invalid)?$")
FIGURES = ("server messages/op", "send p50, ms", "ops/s")


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without the rulers."""
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_first_page_shows_the_figures_of_the_series() -> None:
    """Messages, send p50, throughput and verdict: the medians of docs/performance/strategies.md."""
    first = (ROOT / "README.md").read_text().partition("## What it costs")[2].partition("\n## ")[0]
    series = (ROOT / "docs/performance/strategies.md").read_text().split("\n## ")[1:]
    sections = {section.partition("\n")[0]: section for section in series}
    header, *shown = rows(first)
    assert len(shown) > 1
    for cells in shown:
        titles, *measured = rows(sections[cells[0]])
        figures = {row[0]: dict(zip(titles[1:], row[1:], strict=True)) for row in measured}
        for strategy, cell in zip(header[1:], cells[1:], strict=True):
            found = CELL.match(cell)
            assert found, cell
            expected = [figures[figure][strategy].split()[0] for figure in FIGURES]
            assert list(found.groups()[:3]) == expected, (cells[0], strategy)
            assert bool(found[4]) == (figures["verdict"][strategy] == "**invalid**")


# ---------------------------------------------------------------- what the user of the package sees

LIKE = re.compile(r"^See `[\w.]+`|are those of `\w+`")  # the docstring of another has the arguments


def public() -> Iterator[tuple[str, object]]:
    """Each public name, and each public member of a class."""
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for member, held in vars(value).items():
                    if not member.startswith("_") and (
                        inspect.isroutine(held) or isinstance(held, property)
                    ):
                        yield f"{module.__name__}.{name}.{member}", held


PUBLIC = dict(public())
CALLED = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


def test_the_page_is_what_the_docstrings_say() -> None:
    assert PAGE.read_text() == interface(), "run `.venv/bin/python -m docs.interface`"


@pytest.mark.parametrize(
    "name", [name for name, value in PUBLIC.items() if not isinstance(value, str)]
)
def test_every_public_name_says_what_it_is(name: str) -> None:
    text = PUBLIC[name].__doc__ or ""
    assert text
    assert not text.startswith(f"{name.rpartition('.')[2]}(")  # as a named tuple without one has


@pytest.mark.parametrize("name", CALLED)
def test_every_argument_is_named_by_the_docstring(name: str) -> None:
    called: Callable[..., object] = CALLED[name]
    text = inspect.getdoc(called) or ""
    names = {*inspect.signature(called).parameters} - {"self"}
    assert LIKE.search(text) or names <= {*re.findall(r"\w+", text)}


def test_help_shows_each_public_name_in_a_line() -> None:
    text = pydoc.plain(pydoc.render_doc(leaderless))
    named = re.findall(r"^ {8}(\w[\w.]+)  +\S", text, flags=re.MULTILINE)
    assert {*named} == {*leaderless.__all__, *MODULES[1:]}
    assert all(f"class {name}(" in text or f" {name}(" in text for name in leaderless.__all__)
    assert {*leaderless.__all__} <= {*dir(leaderless)}


@pytest.mark.process
def test_the_package_alone_imports_nothing() -> None:
    code = "import sys; before = {*sys.modules}; import leaderless; print({*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = ast.literal_eval(done.stdout)
    assert {name for name in found if name.split(".")[0] not in sys.stdlib_module_names} == {
        "leaderless"
    }
