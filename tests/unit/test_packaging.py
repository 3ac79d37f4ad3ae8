"""What `pip install .` brings: the package `leaderless`, the command of that name, nothing else."""

import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from leaderless import __version__
from leaderless.cli import COMMANDS, main

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
