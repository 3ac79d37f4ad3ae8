"""The workflow of docs/bench/ci.md, step by step in a fresh folder, as a runner would do it."""

import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.failure import RunFailure
from bench.verdict.last_line import exit_status
from tests.process.test_bench import HANGS_S, ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]
PAGE = (ROOT / "docs/bench/ci.md").read_text()


def block(language: str) -> str:
    """The page's only block in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def steps() -> list[str]:
    """What the workflow runs, in order."""
    found = re.findall(r"^ +run: (?:\|\n((?: {10}.*\n)+)|(.+))", block("yaml"), re.MULTILINE)
    return [textwrap.dedent(several) or one for several, one in found]


@pytest.fixture
def workflow(tmp_path: Path) -> Callable[[Path, int], list[int]]:
    """Run the last steps for a node, all but the first at most; gives their exit statuses."""

    def run(node: Path, count: int) -> list[int]:
        install, *rest = steps()
        assert 'git clone --quiet --depth 1 "$BENCH" bench' in install
        (tmp_path / "bench").symlink_to(ROOT)  # in place of the install, which loads packages
        shutil.copy(node, tmp_path / "node.py")
        shutil.copy(ROOT / "workloads/examples/maelstrom_node.py", tmp_path)
        (tmp_path / "ci.toml").write_text(block("toml"))
        return [
            subprocess.run(
                ["bash", "-e", "-c", step], cwd=tmp_path, timeout=HANGS_S, check=False
            ).returncode
            for step in rest[-count:]
        ]

    return run


def outcomes(file: Path) -> tuple[int, int, int]:
    """How many cases there are, and how many are failures and errors."""
    (suite,) = ElementTree.parse(file).getroot()
    tests, failures, errors = (int(suite.get(n, -1)) for n in ("tests", "failures", "errors"))
    return tests, failures, errors


def test_a_run_that_is_stopped_has_the_status_that_the_page_says() -> None:
    status = exit_status({"valid?": "unknown"}, RunFailure("Ctrl-C", interrupted=True))
    assert re.findall(r"^\| (\d+) \| [^|]*Ctrl-C", PAGE, re.MULTILINE) == [str(status)]


def test_a_right_node_passes(workflow: Callable[[Path, int], list[int]], tmp_path: Path) -> None:
    assert workflow(ROOT / "workloads/examples/broadcast.py", 2) == [0, 0]
    assert outcomes(tmp_path / "results/test.xml") == (2, 0, 0)
    assert outcomes(tmp_path / "results/sweep.xml") == (3, 0, 0)


def test_a_wrong_node_fails_with_the_command_that_repeats_it(
    workflow: Callable[[Path, int], list[int]], tmp_path: Path
) -> None:
    """In the matrix, whose seed stays; the test before it draws its own."""
    assert workflow(ROOT / "tests/nodes/broadcast_forgets.py", 1) == [1]
    tests, failures, errors = outcomes(tmp_path / "results/sweep.xml")
    assert (tests, errors) == (3, 0)
    assert 1 <= failures <= 2, "it is right without faults"
    (suite,) = ElementTree.parse(tmp_path / "results/sweep.xml").getroot()
    said = next(each.text or "" for each in suite.iter("failure"))
    assert "To repeat it: ./maelstrom test" in said
    assert "--seed ci" in said
