"""Files on a disk that is full, limits, and programs that cannot be started."""

import errno
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.failure import RunFailure, unwritable
from bench.system import allow_open_files
from bench.verdict.no_start import cannot_start
from runs.writing import LineFile, write_whole
from tests.full_disk import room


def test_lines_that_do_not_fit_are_not_torn(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines")
    with room(10):
        file.write(b"one\n")
        with pytest.raises(OSError, match="File too large"):
            file.write(b"two\nthree\n")
        assert (tmp_path / "lines").read_bytes() == b"one\ntwo\n"
        with pytest.raises(OSError, match="File too large"):
            file.write(b"four\n")
    file.write(b"five\n")  # somebody made room
    file.close()
    assert (tmp_path / "lines").read_bytes() == b"one\ntwo\nfive\n"


def test_lines_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "lines").symlink_to("/dev/full")
    file = LineFile(tmp_path / "lines")
    with pytest.raises(OSError, match="No space left"):
        file.write(b"one\n")
    file.close()


def test_a_document_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    document = tmp_path / "test.json"
    write_whole(document, ["old"])
    with room(10), pytest.raises(OSError, match="File too large"):
        write_whole(document, ["x" * 20])
    assert document.read_text() == "old"
    assert list(tmp_path.iterdir()) == [document]


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "Make room"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EROFS, "Give another folder with --store"),
    ],
)
def test_what_to_do_about_a_file_that_cannot_be_written(number: int, hint: str) -> None:
    assert hint in str(unwritable("The run", OSError(number, "why")))


@pytest.fixture
def files_allowed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Pretend a soft and a hard limit; gives the list of limits that are then asked for."""
    asked = []

    def pretend(soft: int, hard: int) -> list[Any]:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda _, new: asked.append(new))
        return asked

    return pretend


def test_the_limit_of_open_files_is_raised_only_as_far_as_needed(
    files_allowed: Callable[..., Any],
) -> None:
    asked = files_allowed(1024, 1_000_000)
    allow_open_files(5)
    assert asked == []
    allow_open_files(5000)
    ((soft, hard),) = asked
    assert 10_000 < soft < 12_000
    assert hard == 1_000_000


@pytest.mark.parametrize("unlimited", [(-1, -1), (1024, -1)])
def test_without_a_limit_any_number_of_nodes_may_run(
    files_allowed: Callable[..., Any], unlimited: tuple[int, int]
) -> None:
    files_allowed(*unlimited)
    allow_open_files(100_000)


def test_a_limit_that_cannot_be_raised_is_told(files_allowed: Callable[..., Any]) -> None:
    files_allowed(256, 256)
    with pytest.raises(RunFailure, match=r"300 nodes need \d+ open files.*ulimit -n"):
        allow_open_files(300)


@pytest.mark.parametrize(
    ("number", "first_line", "mode", "hint"),
    [
        (errno.ENOENT, None, 0, "Check the path"),
        (errno.ENOENT, "#!/no/such/sh -e", 0o755, "/no/such/sh, which is not there"),
        (errno.ENOENT, "#!/bin/sh", 0o755, "Check the path"),
        (errno.EACCES, "#!/bin/sh", 0o644, "chmod +x"),
        (errno.EACCES, "#!/etc/passwd", 0o755, "/etc/passwd, which is no program"),
        (errno.EACCES, "#!/bin/sh", 0o755, "noexec"),
        (errno.ENOEXEC, "hello", 0o755, "A script needs a first line"),
        (errno.EMFILE, "#!/bin/sh", 0o755, "ulimit -n"),
        (errno.EAGAIN, "#!/bin/sh", 0o755, "ulimit -u"),
    ],
)
def test_why_a_program_cannot_be_started(
    tmp_path: Path, number: int, first_line: str | None, mode: int, hint: str
) -> None:
    program = Path(tmp_path / "program")
    if first_line is not None:
        program.write_text(first_line + "\n")
        program.chmod(mode)
    failure = cannot_start("n0", str(program), OSError(number, "why"))
    assert hint in str(failure)
    assert str(failure).startswith(f"Node n0 cannot be started: {program}: why. ")
