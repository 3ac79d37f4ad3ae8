"""Folders of runs, the journal's file, and the file of a live log."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runs.live import FILE, FOLDER, Live, keep_live, live_names, read_live
from runs.store import create_run_dir
from runs.writing import compress_if_large

NOW = datetime(2026, 1, 2, 3, 4, 5, 999_500, tzinfo=UTC)


def test_a_run_has_its_own_folder_and_latest_points_to_it(tmp_path: Path) -> None:
    run = create_run_dir(tmp_path, "kafka", NOW)
    assert run == tmp_path / "kafka" / "20260102T030405.999"
    assert (run / "node-logs").is_dir()
    assert (tmp_path / "latest").resolve() == run
    assert (tmp_path / "kafka/latest").resolve() == run
    assert not (tmp_path / "latest").readlink().is_absolute()  # the store can be moved


def test_only_a_large_journal_is_compressed_and_only_with_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "net-journal.jsonl"
    path.write_bytes(b"line\n" * 100)
    assert compress_if_large(path) == path
    with monkeypatch.context() as full:
        full.setattr("shutil.copyfileobj", no_room)
        assert compress_if_large(path, above_bytes=99) == path
    assert [*tmp_path.iterdir()] == [path]
    packed = compress_if_large(path, above_bytes=99)
    assert [*tmp_path.iterdir()] == [packed] == [tmp_path / "net-journal.jsonl.gz"]
    assert gzip.decompress(packed.read_bytes()) == b"line\n" * 100


def test_a_store_without_links_is_no_reason_not_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latest").mkdir()  # as a copy of a store may have it
    (tmp_path / "latest" / "kept").touch()
    assert create_run_dir(tmp_path, "echo", NOW).is_dir()
    assert (tmp_path / "latest" / "kept").exists()

    def no_links(*_: object, **__: bool) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pathlib.Path.symlink_to", no_links)
    assert create_run_dir(tmp_path, "other", NOW).is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"echo", "other", "latest"}


def test_many_benches_at_once_do_not_meet_and_latest_is_what_began_last(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as benches:
        runs = list(benches.map(lambda _: create_run_dir(tmp_path, "echo", NOW), range(64)))
    assert len(set(runs)) == 64
    assert (tmp_path / "latest").resolve() in runs
    assert (tmp_path / "latest").resolve() == (tmp_path / "echo/latest").resolve()
    last = create_run_dir(tmp_path, "echo", NOW - timedelta(days=1))  # the clock went back
    assert (tmp_path / "latest").resolve() == last
    assert {path.name for path in tmp_path.iterdir()} == {"echo", "latest"}


# ---------------------------------------------------------------- a live log


LATENCIES = {"latency_ns_p50": 1, "latency_ns_p90": 2, "latency_ns_p99": 3, "latency_ns_max": 4}
S = 10**9


def window(start_s: int, records: int) -> dict[str, int]:
    return {"window_start_ns": start_s * S, "records": records, "timed": 1, **LATENCIES}


EMPTY = Live("sqlite:///log.db", S, 0.0, ())


def test_a_window_that_comes_again_replaces_itself() -> None:
    live = EMPTY.with_windows([window(8, 2), window(7, 1)], 1.0)
    again = live.with_windows([window(8, 5), window(9, 1) | {"more": 1}], 2.0)
    assert again.windows == (window(7, 1), window(8, 5), window(9, 1))
    assert (again.records, again.updated_s) == (7, 2.0)
    assert again.with_windows([window(8, 5)], 2.0) == again


def test_the_last_windows_are_those_of_the_last_widths() -> None:
    live = EMPTY.with_windows([window(start, 1) for start in (1, 5, 6, 9)], 1.0)
    assert [each["window_start_ns"] // S for each in live.last(5).windows] == [5, 6, 9]
    assert EMPTY.last(5) == EMPTY


def test_what_was_kept_is_read_and_what_is_no_such_file_is_none(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "log"
    live = EMPTY.with_windows([window(7, 1)], 1.5)
    assert (live_names(tmp_path), read_live(folder)) == ([], None)
    keep_live(folder, live)
    assert (live_names(tmp_path), read_live(folder)) == (["log"], live)
    assert [file.name for file in folder.iterdir()] == [FILE]
    for text in ("", "[]", "{}", '{"url": "x", "window_ns": 1, "updated_s": 0, "windows": [{}]}'):
        (folder / FILE).write_text(text)
        assert read_live(folder) is None, text
