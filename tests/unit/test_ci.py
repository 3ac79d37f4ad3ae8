"""What runs elsewhere: `.ci/install`, the workflow that calls `.ci/run`, the steps of the Dockerfile."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "install"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Collecting anyio==4.16.0 (from -r run.lock (line 1))", "1/9 anyio 4.16.0"),
        ("Requirement already satisfied: rich==15.0.0 in ./lib", "1/9 rich 15.0.0"),
        ("Processing /opt/files/py4j-0.10.9.9-py2.py3-none-any.whl (from -r x)", "py4j 0.10.9.9"),
        ("Processing ./pyspark-4.3.0.tar.gz", "1/9 pyspark 4.3.0"),
        ("Installing collected packages: ply, orjson", "Installing collected packages"),
        ("  Downloading anyio-4.16.0-py3-none-any.whl (134 kB)", ""),
    ],
)
def test_a_package_is_a_step_of_the_line_that_moves(
    capsys: pytest.CaptureFixture[str], said: str, shown: str
) -> None:
    runpy.run_path(str(SCRIPT))["Progress"](9, moves=True).line(said)
    output = capsys.readouterr().out
    assert shown in output
    assert bool(shown) == bool(output)
    assert "\n" not in output


def test_where_no_line_can_move_a_phase_is_a_line_and_a_package_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = runpy.run_path(str(SCRIPT))["Progress"](9, moves=False)
    for said in ("Collecting anyio==4.16.0", "Installing collected packages: anyio"):
        progress.line(said)
    progress.end("done")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" s  ")[2] for line in lines] == [
        "Installing collected packages",
        "done",
    ]


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


def test_the_workflow_has_no_check_of_its_own() -> None:
    text = (ROOT / ".github/workflows/check.yml").read_text()
    assert re.findall(r"run: (.*)", text) == [".ci/run"]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_container_has_what_the_package_is_made_of() -> None:
    text = (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = " ".join(re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE)).split()
    assert {*copied} == {"leaderless", "LICENSE", "pyproject.toml", project["readme"]}
    [extras] = re.findall(r"^RUN pip install .*\[(.*)\]", text, flags=re.MULTILINE)
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}
