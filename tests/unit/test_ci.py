"""What runs elsewhere: `.ci/install`, the workflow that calls `.ci/run`, the steps of the Dockerfile."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from tests import programs
from tests.programs import ROOT

pytestmark = pytest.mark.process

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
    assert re.findall(r"run: (.*)", (ROOT / ".github/workflows/check.yml").read_text()) == [
        ".ci/run"
    ]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_container_has_what_the_package_is_made_of() -> None:
    text = (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = " ".join(re.findall(r"^COPY (.*) \S+$", text, flags=re.MULTILINE)).split()
    assert {*copied} == {
        "leaderless",
        "LICENSE",
        "node.py",
        "pyproject.toml",
        "run.sh",
        project["readme"],
    }
    [extras] = re.findall(r"^RUN pip install .*\[(.*)\]", text, flags=re.MULTILINE)
    assert {*extras.split(",")} <= {*project["optional-dependencies"]}


def test_a_target_says_what_it_lacks_and_the_line_that_brings_it(tmp_path: Path) -> None:
    needs = partial(subprocess.run, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    done = needs([sys.executable, ROOT / ".ci/needs", "check"], check=False)
    assert done.returncode == 1
    assert "etcd, git, java" in done.stderr
    assert "openjdk-17-jre-headless" in done.stderr


def test_the_commands_of_the_readme_need_no_program_of_the_list() -> None:
    assert not {"run", "test"} & set(programs.TABLE["targets"])


def test_a_test_starts_no_program_that_the_list_lacks() -> None:
    with pytest.raises(AssertionError, match=r"does not list /.*/ls"):
        subprocess.run(["ls"], check=False)


LACKING = """
import pytest
from tests import programs
def test_one(monkeypatch): monkeypatch.setenv("PATH", ""); programs.need("etcd")
def test_two(): pytest.skip("as it rains")
def test_three(): pass
"""


def test_tests_that_lack_a_program_are_counted_and_those_that_passed_are_done(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "test_lacking.py").write_text(LACKING)
    command = [sys.executable, "-m", "pytest", "-rs", "--rootdir", ".", "--done", "done"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for counted in ("1 passed, 1 skipped", "1 skipped"):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        said = done.stdout
        assert "1 tests were left out" in said
        assert "1 need etcd: apt-get install etcd-server" in said
        assert "as it rains" in said
        assert f"{counted} in" in re.sub(r"=+ ", "", said)
        assert done.returncode == 0
