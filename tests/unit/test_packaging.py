"""What an installation brings, from `pip install .`, from `.ci/install`, and without pyarrow."""

import os
import runpy
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import anyio
import pytest

from leaderless import __version__
from leaderless.cli import COMMANDS, main
from leaderless.library.place import initialise
from leaderless.store.sqlite import SqliteStore

pytestmark = pytest.mark.process  # it builds and installs the wheel

ROOT = Path(__file__).parents[2]
BUILD = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
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


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds nothing but the wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    done = run(sys.executable, "-m", "pip", "--python", folder, *INSTALL, wheel)
    assert done.returncode == 0, done.stderr
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


def test_the_command_needs_no_other_package_to_tell_its_version(bin_folder: Path) -> None:
    done = run(bin_folder / "leaderless", "--version")
    assert (done.returncode, done.stdout) == (0, f"leaderless {__version__}\n")
    found = run(bin_folder / "leaderless", "--help").stdout
    assert all(f"  {name} " in found and row.summary in found for name, row in COMMANDS.items())


def test_a_node_starts_without_the_command_line() -> None:
    code = "import sys, node; sys.exit('leaderless.cli' in sys.modules or 'click' in sys.modules)"
    assert run(sys.executable, "-c", code, cwd=ROOT).returncode == 0


def test_the_command_runs_a_node() -> None:
    command = [sys.executable, "-m", "leaderless.cli", "node", "--strategy", "cas"]
    message = '{"src":"c1","dest":"n1","body":{"type":"init","msg_id":1,"node_id":"n1","node_ids":["n1"]}}\n'
    done = run(*command, cwd=ROOT, input=message)
    assert done.returncode == 0, done.stderr
    assert '"init_ok"' in done.stdout


def test_a_node_that_the_command_runs_has_its_name_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["node", "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: leaderless node ")


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["elect"])
    assert ended.value.code == 2
    assert "invalid choice: 'elect'" in capsys.readouterr().err


# ---------------------------------------------------------------- .ci/install


SCRIPT = Path(__file__).parents[2] / ".ci" / "install"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Collecting anyio==4.16.0 (from -r run.lock (line 1))", "1/9 anyio 4.16.0"),
        ("Requirement already satisfied: rich==15.0.0 in ./lib", "1/9 rich 15.0.0"),
        ("Processing /opt/files/py4j-0.10.9.9-py2.py3-none-any.whl (from -r x)", "py4j 0.10.9.9"),
        ("Processing ./pyspark-4.3.0.tar.gz", "1/9 pyspark 4.3.0"),
        ("Installing collected packages: ply, orjson", "Installing collected packages\n"),
        ("  Downloading anyio-4.16.0-py3-none-any.whl (134 kB)", ""),
    ],
)
def test_a_package_is_a_line(capsys: pytest.CaptureFixture[str], said: str, shown: str) -> None:
    runpy.run_path(str(SCRIPT))["Progress"](9).line(said)
    output = capsys.readouterr().out
    assert shown in output
    assert bool(shown) == bool(output)


def test_a_failure_shows_what_pip_said_and_its_status(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    lock.write_text("no-such-package-of-ours==1.0\n")
    done = subprocess.run(
        [sys.executable, SCRIPT, lock],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PIP_NO_INDEX": "1"},
    )
    assert done.returncode == 1
    assert "ERROR: No matching distribution found for no-such-package-of-ours==1.0" in done.stderr
    assert "WARNING: Location" not in done.stderr


# ---------------------------------------------------------------- without pyarrow


PROGRAM = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
from leaderless.cli import main
sys.exit(main(sys.argv[1:]))
"""


async def _make(file: Path) -> None:
    store = SqliteStore(file)
    await initialise(store, "parquet")
    await store.aclose()


def test_the_package_is_asked_for_where_it_is_needed(tmp_path: Path) -> None:
    anyio.run(_make, tmp_path / "files.db")

    def call(command: str, file: str, *rest: str) -> tuple[int, str]:
        arguments = [command, *rest, "--json", "--store", f"sqlite:///{tmp_path / file}"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    for command, *rest in (["read", "k"], ["init"], ["fsck"]):
        status, said = call(command, "files.db", *rest)
        assert (status, "pip install '.[table]'" in said) == (1, True), said
    assert call("init", "json.db")[0] == 0
    assert call("produce", "json.db", "k", "1")[0] == 0
    status, said = call("init", "new.db", "--runs", "parquet")
    assert (status, "pip install '.[table]'" in said) == (1, True), said
