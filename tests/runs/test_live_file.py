"""The file of a live log: what is kept, replaced, and read again."""

from pathlib import Path

from runs.live import FILE, FOLDER, Live, keep_live, live_names, read_live

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


def test_what_was_kept_is_read(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "log"
    live = EMPTY.with_windows([window(7, 1)], 1.5)
    assert live_names(tmp_path) == []
    keep_live(folder, live)
    assert read_live(folder) == live
    assert live_names(tmp_path) == ["log"]
    assert [file.name for file in folder.iterdir()] == [FILE]


def test_what_is_no_such_file_is_none(tmp_path: Path) -> None:
    assert read_live(tmp_path) is None
    for text in ("", "[]", "{}", '{"url": "x", "window_ns": 1, "updated_s": 0, "windows": [{}]}'):
        (tmp_path / FILE).write_text(text)
        assert read_live(tmp_path) is None, text
