"""What an installation brings: the wheel, each extra in an environment of its own, the types."""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib.metadata import Distribution, distribution
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import anyio
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement

from analysis.cli import main as analysis
from leaderless import __version__
from leaderless.cli import SUMMARIES, main
from leaderless.hosting.place import initialise
from leaderless.store.sqlite import SqliteStore
from tests.programs import ROOT, need

pytestmark = pytest.mark.process  # it builds and installs the wheel

# The wheel from the source archive.
BUILD = [
    sys.executable,
    "-m",
    "build",
    "--no-isolation",
    "--outdir",
]
INSTALL = ["install", "--quiet", "--no-index", "--no-deps"]


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = run(*BUILD, folder, ROOT)
    assert done.returncode == 0, done.stderr
    [found] = folder.glob("*.whl")
    return found


def install(folder: Path, wheel: Path) -> None:
    """Make an environment that holds nothing but the wheel."""
    venv.create(folder, symlinks=True)
    done = run(sys.executable, "-m", "pip", "--python", folder, *INSTALL, wheel)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that holds nothing but the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    install(folder, wheel)
    return folder / "bin"


def test_the_wheel_holds_only_names_of_this_project(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith("METADATA")]
        lines = archive.read(metadata).decode().splitlines()
    info = f"leaderless-{__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"leaderless", info}
    needs = [line.split()[1] for line in lines if line.startswith("Requires-Dist:")]
    always = [
        line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    assert len(needs) > len(always)
    assert [line.split()[1].partition(">")[0] for line in always] == ["anyio", "orjson"]
    assert "leaderless/py.typed" in names


def test_the_source_archive_holds_what_the_wheel_is_made_of(wheel: Path) -> None:
    [archive] = wheel.parent.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/")[1] for name in opened.getnames()}
    rooms = {"bench", "docs", "leaderless", "runs", "simulation", "specs", "tests", "workloads"}
    files = {"LICENSE", "PKG-INFO", "README.md", "node.py", "pyproject.toml", "run.sh"}
    assert names == {*rooms, *files, ".gitignore"}


@pytest.fixture
def checked(wheel: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a type checker beside the package as it is installed, and all packages that it may import."""
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": str(tmp_path / "site")}
    return partial(run, sys.executable, "-m", cwd=tmp_path, env=os.environ | environment)


@pytest.mark.slow
def test_type_checkers_know_the_type_of_every_public_name(
    checked: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    need("node")  # pyright runs on it
    done = checked("pyright", "--verifytypes", "leaderless", "--ignoreexternal")
    assert "Type completeness score: 100%" in done.stdout, done.stdout
    assert done.returncode == 0


ORDINARY = """
from collections.abc import Mapping, Sequence
from typing import TypedDict
from leaderless import Log, LogSync, Record

class Order(TypedDict):
    item: int
    names: list[str]

async def orders(log: Log, order: Order, many: list[Order]) -> None:
    await log.append("k", order)
    await log.append_many("k", many)
    await log.append_named("writer", 1, [("k", order), ("k", b"bytes")])

async def counts(log: Log, count: dict[str, int], rows: Sequence[Mapping[str, str]]) -> None:
    await log.append("k", count)
    await log.append("k", rows)
    pairs: list[tuple[str, dict[str, int]]] = [("k", count)]
    await log.append_named("writer", 2, pairs)

def items(log: LogSync, settings: Mapping[str, list[int]]) -> list[int]:
    log.append("k", settings)
    return [record.value["item"] + price(record) for record in log.read("k")]

def owned(log: LogSync) -> list[str]:
    with log.consumer("g", ["eu"]) as consumer:
        record: Record = next(consumer)
        consumer.ack(record)
        return consumer.keys

def letters(log: LogSync) -> None:
    log.append_many("eu", "hello")  # type: ignore
    log.tail("eu")  # type: ignore
    log.committed("g", "eu")  # type: ignore
    log.consumer("g", "eu")  # type: ignore

def price(record: Record) -> int:
    found: int = record.value["prices"][0]
    return found
"""
STRICT = """{"typeCheckingMode": "strict", "include": ["program.py"],
"reportUnnecessaryTypeIgnoreComment": true}"""  # as mypy does: so what is ignored is an error


@pytest.mark.parametrize(
    "checker", [["mypy", "--strict", "--cache-dir=cache"], ["pyright"]], ids=" ".join
)
def test_ordinary_programs_pass_strict_type_checkers(
    checked: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, checker: list[str]
) -> None:
    if checker == ["pyright"]:
        need("node")
    (tmp_path / "program.py").write_text(ORDINARY)
    (tmp_path / "pyrightconfig.json").write_text(STRICT)
    done = checked(*checker, "program.py")
    assert done.returncode == 0, done.stdout


def test_the_command_needs_no_other_package_to_tell_its_version(bin_folder: Path) -> None:
    done = run(bin_folder / "leaderless", "--version")
    assert (done.returncode, done.stdout) == (0, f"leaderless {__version__}\n")
    found = run(bin_folder / "leaderless", "--help").stdout
    assert all(f"  {name} " in found and summary in found for name, summary in SUMMARIES.items())


def test_a_node_starts_without_the_command_line() -> None:
    code = "import sys, node; sys.exit('leaderless.cli' in sys.modules or 'click' in sys.modules)"
    assert run(sys.executable, "-c", code, cwd=ROOT).returncode == 0


def test_a_node_that_the_command_runs_has_its_name_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["node", "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: leaderless node ")


# ---------------------------------------------------------------- each extra


LACKS = {  # without it: a command, what it says is missing, and the extra that brings it
    "s3": (["init", "--store", "s3://bucket/log", "--endpoint", "http://127.0.0.1:9"], "obstore"),
    "etcd": (["init", "--store", "etcd://127.0.0.1:9"], "httpx"),
    "table": (["init", "--runs", "parquet"], "pyarrow"),
}
ELSEWHERE = r"__main__|workloads\.examples|moto_server"  # programs, which import what they need
IMPORT = f"""
import importlib, pkgutil, re, sys
for room in map(importlib.import_module, sys.argv[1:]):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        if not re.search({ELSEWHERE!r}, module.name):
            importlib.import_module(module.name)
"""
ROOMS = {  # of the checkout, and the extra that has all that their modules import
    "bench": ["runs", "workloads", "bench", "simulation"],
    "specs": ["specs"],
    "analysis": ["analysis.checker", "analysis.live", "analysis.synthesise"],
    "notebooks": ["analysis"],
    "spark": ["leaderless.spark"],
}


def needed(extra: str, own: Iterable[str]) -> set[str]:
    """The packages that `own`, the requirements of the wheel, ask for: always, and for an extra."""
    found: set[tuple[str, str]] = set()
    todo = [("leaderless", extra)]
    while todo:
        name, wanted = todo.pop()
        for line in own if name == "leaderless" else distribution(name).requires or ():
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate({"extra": wanted}):
                new = {(asked.name, each) for each in ("", *asked.extras)} - found
                found |= new
                todo += new
    return {name for name, _ in found} - {"leaderless"}


@pytest.fixture(scope="module")
def with_extra(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes an environment with the wheel and the packages of an extra, no others; gives its programs."""

    @cache
    def make(extra: str) -> Path:
        folder = tmp_path_factory.mktemp(extra or "alone")
        install(folder, wheel)
        [site] = folder.glob("lib/*/site-packages")
        [own] = site.glob("leaderless-*.dist-info")
        for name in needed(extra, Distribution.at(own).requires or ()):
            for file in distribution(name).files or ():
                to = site / file.parts[0]
                if file.parts[0] not in ("..", "__pycache__") and not to.exists():
                    to.symlink_to(Path(str(distribution(name).locate_file(file.parts[0]))))
        return folder / "bin"

    return make


async def make_parquet(file: Path) -> None:
    store = SqliteStore(file)
    await initialise(store, "parquet")
    await store.aclose()


# Commands as the program `leaderless` runs them, one after the other: to start it takes longer than they do.
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from leaderless.cli import main

for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()) as told:
        status = main(command)
    print(json.dumps([status, said.getvalue(), told.getvalue()]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["", *LACKS])
def test_an_extra_brings_its_store_and_the_others_are_asked_for_in_a_sentence(
    with_extra: Callable[[str], Path], tmp_path: Path, extra: str
) -> None:
    anyio.run(make_parquet, tmp_path / "files.db")
    common = ["--json", "--patience", "1"]
    there = ["--store", f"sqlite:///{tmp_path / 'files.db'}", "--json"]
    commands = [
        *([*command, *common] for command, _ in LACKS.values()),
        *(["init"], ["produce", "eu", "7"], ["read", "eu"], ["fsck"]),
        *([*what, "--json"] for what in (["files"], ["retain", "--age", "9"])),
        *([*what, *there] for what in (["read", "k"], ["init"], ["fsck"])),
    ]
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "unused")
    done = run(
        *(with_extra(extra) / "python", "-c", COMMANDS, json.dumps(commands)),
        cwd=tmp_path,
        env=os.environ | keys,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(commands), done.stderr
    for (other, (_, package)), (_, text, _) in zip(LACKS.items(), told, strict=False):
        said = json.loads(text)
        assert (package in said.get("error", "")) == (other != extra), said
        assert (f"[{other}]" in said.get("error", "")) == (other != extra), said
    assert [status for status, *_ in told[3:7]] == [0] * 4, told[3:7]
    for _, text, errors in told[7:]:
        assert ("[table]" in text) == (extra != "table"), text
        assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize("extra", ROOMS)
def test_an_extra_has_all_that_its_rooms_import(
    with_extra: Callable[[str], Path], tmp_path: Path, extra: str
) -> None:
    """In the checkout; of the package itself, where it is installed."""
    path = {} if extra == "spark" else {"PYTHONPATH": str(ROOT)}
    done = run(
        with_extra(extra) / "python",
        "-c",
        IMPORT,
        *ROOMS[extra],
        cwd=tmp_path,
        env=os.environ | path,
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- the bench


ALSO = (
    "maelstrom new n.js",
    "maelstrom new --language shell n",
    "maelstrom test -w echo --bin n.sh --node-count 1 --time-limit 1",
    "maelstrom demo --help",
    "maelstrom sweep own.toml",
    "maelstrom simulate --seed 1",
    "maelstrom explore --nodes 1 --sends 1 --polls 1",
    "lessons/maelstrom check results/latest",  # as the chapters have it
)
OWN_NODE = """
[base]
workload = "kafka"
nodes = 1
time-limit = 1
recovery-time = 1
"""


@pytest.fixture
def bench(with_extra: Callable[[str], Path], tmp_path: Path) -> str:
    """The command, for a folder that holds modules with the names of its own."""
    for name in ("bench", "runs", "simulation", "specs", "workloads"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of another')")
    return str(with_extra("bench") / "maelstrom")


@pytest.mark.slow
def test_the_commands_of_the_first_page_run_in_any_folder_and_so_do_those_that_they_start(
    bench: str, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text(OWN_NODE)
    printed = re.findall(
        r"^(maelstrom .*?)(?: +#.*)?$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert len(printed) > 3
    for line in [*printed, *ALSO]:
        program, *words = line.split()
        done = run(bench if program == "maelstrom" else tmp_path / program, *words, cwd=tmp_path)
        assert done.returncode == 0, (line, done.stdout + done.stderr)
        assert "./maelstrom" not in done.stdout
    kits = {file.suffix for file in tmp_path.glob("maelstrom_node.*")}
    assert kits == {".js", ".py"}, "a node gets the kit that it imports"


@pytest.mark.slow
def test_pages_are_served_from_any_folder_until_ctrl_c(bench: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [bench, "serve", "--store", ".", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as serving:
        line = str(serving.stdout and serving.stdout.readline())
        with urlopen(re.findall(r"http://\S+", line)[0]) as page:
            assert b"<html" in page.read()
        serving.send_signal(signal.SIGINT)
        assert serving.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(serving.pid, 0)


def test_without_its_packages_the_bench_says_what_brings_them(bin_folder: Path) -> None:
    done = run(bin_folder / "maelstrom", "--help")
    assert (done.returncode, done.stderr) == (
        255,
        "maelstrom: the package click is missing: pip install '.[bench]' in a checkout of leaderless\n",
    )


# ---------------------------------------------------------------- without a package


def test_what_make_run_does_not_install_names_the_target_that_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nbformat", None)
    monkeypatch.delitem(sys.modules, "analysis.notebooks.execution", raising=False)
    done = CliRunner().invoke(analysis, ["notebooks"])
    assert (done.exit_code, done.output) == (
        1,
        "Error: the package nbformat is missing: `make setup` installs it\n",
    )
