"""Shared by all tests: how hard hypothesis works, and which tests share a process.

`HYPOTHESIS_PROFILE=nightly` digs deeper.
"""

import gc
import os
import signal
import zipfile
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio.testing
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from runs.collection import collected_quietly, collection_paused
from tests import programs, servers
from tests.stores import EXPECTED, JUDGED, STORES, WITH_JOURNAL

settings.register_profile("ci", derandomize=True, deadline=None, database=None, max_examples=60)
settings.register_profile("dev", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell without job control ignores Ctrl-C for what it runs in the background, and processes inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FOLDER_MARKS = ("process", "simulation")  # a folder of this name holds tests of this mark
# pytest-xdist runs all tests of such a folder in one process, and begins with them: the first share one
# Spark session, and the others start processes that measure time.
TOGETHER = ("analysis", "process")
# Files of these folders that need no session of others: two start programs with a Spark of their own, and the
# third is worth a second session, as what is together would end last.
ALONE = ("test_cluster.py", "test_own_spark.py", "test_table_in_spark.py")
# They wait most of their time: so they begin early.
LONG = ("test_table_races.py", "test_merge.py", "test_transcripts.py")
# Tests with long cases that share nothing. They come last, and fill up the processes that are done early.
APART = (
    "test_a_sound_log_survives_2000_seeds",
    "test_it_is_found",
    "test_many_seeds",
    "test_real_traces_are_accepted",
    "test_sound_in_every_schedule_with_faults",
)


def folder_of(nodeid: str) -> str:
    """The folder within `tests` of a test, given its name or file from the root of the project."""
    return nodeid.partition("tests/")[2].partition("/")[0]


def scope_of(nodeid: str) -> str:
    """What one process runs: a folder in `TOGETHER`, one case of a test in `APART`, else a file."""
    folder = folder_of(nodeid)
    file, _, test = nodeid.partition("::")
    if test.startswith(APART):
        return nodeid
    return folder if folder in TOGETHER and not file.endswith(ALONE) else file


def _rank(item: pytest.Item) -> int:
    """The longest scope first, the shortest last."""
    scope = scope_of(item.nodeid)
    if scope in TOGETHER:
        return 0
    if scope.endswith(LONG):
        return 1
    return 3 if scope == item.nodeid else 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--done FILE` goes on where a run on the same sources stopped, or lacked a program."""
    parser.addoption(
        "--done", type=Path, help="leave out the tests in this file, and add to it those that pass"
    )


@cache
def _ended(done: Path) -> set[str]:
    """The files of which a run has counted the tests, and all have passed."""
    lines = done.read_text().splitlines() if done.exists() else []
    passed = Counter(line.partition("::")[0] for line in lines)
    counted = (line.partition(" ") for line in lines if "::" not in line)
    return {file for count, _, file in counted if passed[file] == int(count)}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which nothing is left need not be imported."""
    done = config.getoption("done")
    return (
        bool(done) and str(collection_path.relative_to(config.rootpath)) in _ended(done)
    ) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Modules and tests live to the end: a sixth of the time to collect them went into walking through them.

    Later the collector passes over them, too.
    """
    with collection_paused():
        collected = yield
        gc.freeze()
        return collected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their folder, leave out those that are done, and sort by how long their scope takes."""
    if done := config.getoption("done"):
        done.touch()
        if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
            files = Counter(item.nodeid.partition("::")[0] for item in items)
            with done.open("a") as file:
                file.writelines(f"{count} {name}\n" for name, count in files.items())
        names = set(done.read_text().splitlines())
        items[:] = [item for item in items if item.nodeid not in names]
    for item in items:
        folder = folder_of(item.nodeid)
        if folder in FOLDER_MARKS:
            item.add_marker(folder)
    items.sort(key=_rank)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what needs a program that is not there."""
    for mark in filter(item.get_closest_marker, programs.OF_MARKERS):
        for name in programs.OF_MARKERS[mark]:
            programs.need(name)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Note what passed, and tell once what was left out for want of a program, with what brings it."""
    if done := config.getoption("done"):
        passed: list[pytest.TestReport] = terminalreporter.stats.get("passed", [])
        before = done.read_text().splitlines() if done.exists() else []
        names = dict.fromkeys([*before, *(each.nodeid for each in passed)])
        done.write_text("".join(f"{name}\n" for name in names))
    skipped: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    missed = [each for each in skipped if programs.missed(each.longreprtext)]
    if missed:
        terminalreporter.stats["skipped"] = [each for each in skipped if each not in missed]
        terminalreporter.section(f"{len(missed)} tests were left out")
        for line in programs.told(each.longreprtext for each in missed):
            terminalreporter.line(line)


@pytest.fixture(scope="session", autouse=True)
def _listed_programs() -> Iterator[None]:
    with programs.only_those_listed():
        yield


class ByScope(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Each process takes one scope after the other (see `scope_of`)."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Where pytest-xdist runs tests side by side, it goes by scope."""
    return ByScope(config, log)


@pytest.fixture
def garbage_collected() -> Iterator[None]:
    """The nodes that die in a test are gone when it ends (see `runs.collection`)."""
    with collected_quietly():
        yield


@pytest.fixture(params=[folder.name for folder in WITH_JOURNAL])
def store(request: pytest.FixtureRequest) -> Path:
    """Each store of the real tool in turn whose journal is there as JSON lines too."""
    name: str = request.param
    return STORES / name


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The histories that the real tool has judged, in the order of `EXPECTED`."""
    folder = tmp_path_factory.mktemp("judged")
    with zipfile.ZipFile(JUDGED / "histories.zip") as archive:
        archive.extractall(folder)
    return [folder / f"{each['file']}.gz" for each in EXPECTED]


@pytest.fixture(scope="session")
def ceph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of Ceph's gateway, which takes 15 seconds to start; for tests marked `stores`."""
    with servers.ceph(tmp_path_factory.mktemp("ceph")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of Azure's emulator; for tests marked `stores`."""
    with servers.azurite(tmp_path_factory.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> str | tuple[str, dict[str, Any]]:
    """Asynchronous tests run on asyncio; those marked `virtual_time` on trio, with a clock that jumps.

    `tests/unit/test_stdio.py` and others run on both.
    """
    if request.node.get_closest_marker("virtual_time"):
        return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}
    return "asyncio"
