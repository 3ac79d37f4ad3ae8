"""The programs that tests start, and what becomes of a test on a machine that lacks one.

`requirements/programs.toml` lists them. A test that needs one which is not there is left out; the end of the
run tells how many were, and what brings the program.
"""

import os
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TABLE = tomllib.loads((ROOT / "requirements/programs.toml").read_text())
OF_MARKERS = {"spark": ["java"], "tlc": ["java"], "browser": ["chromium", "chromedriver"]}
_LISTED = {*TABLE["packages"], *TABLE["bare"]}
_OF_THE_MACHINE = {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"}
_LEFT_OUT = re.compile(r"without the program ([\w-]+)")


def need(name: str) -> str:
    """The path of a program; without it, or a Java that is new enough, the test is left out."""
    path = shutil.which(name)
    if path is None or (name == "java" and _why_no_java()):
        pytest.skip(f"without the program {name}")
    return path


@cache
def _why_no_java() -> str:
    done = subprocess.run(
        ["sh", ROOT / ".ci/require-java"], capture_output=True, text=True, check=False
    )
    return done.stderr.strip() if done.returncode else ""


def missed(reason: str) -> str:
    """The program for want of which a test was left out; empty if it was left out for another reason."""
    return "".join(_LEFT_OUT.findall(reason))


def told(reasons: Iterable[str]) -> list[str]:
    """A line for each program that was missing: how many tests, and what brings it."""
    return [
        f"{count} need {name}: {_brings(name)}"
        for name, count in sorted(Counter(map(missed, reasons)).items())
    ]


def _brings(name: str) -> str:
    return _why_no_java() if name == "java" else f"apt-get install {TABLE['packages'][name]}"


def _is_unlisted(path: Path) -> bool:
    """Whether a program is of the machine, and the table lacks it. An environment links to Python's."""
    places = (path, path.resolve())
    if {str(each.parent) for each in places}.isdisjoint(_OF_THE_MACHINE):
        return False
    names = {each.name for each in places}
    return names.isdisjoint(_LISTED) and not any(each.startswith("python") for each in names)


@contextmanager
def only_those_listed() -> Iterator[None]:
    """While it lasts, whoever starts a program of the machine that the table does not list gets an error."""
    start: Any = subprocess.Popen.__init__

    def checked(self, args, *more, executable=None, **options):  # type: ignore[no-untyped-def]
        found = shutil.which(
            executable or (args if isinstance(args, str | os.PathLike) else args[0])
        )
        if found and _is_unlisted(Path(found)):
            raise AssertionError(f"requirements/programs.toml does not list {found}")
        start(self, args, *more, executable=executable, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", checked)
        yield
