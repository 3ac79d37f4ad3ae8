"""The page of a live log renews itself, and shows the windows that are kept."""

import html
import time
from pathlib import Path

from flask.testing import FlaskClient

from bench.pages.app import create_app
from bench.pages.shelf import Shelf
from runs.live import FOLDER, Live, keep_live
from runs.store import Store

S = 10**9
FIRST_S = 1_700_000_000
NAMES = ("latency_ns_p50", "latency_ns_p90", "latency_ns_p99", "latency_ns_max")


def client_of(store: Path) -> FlaskClient:
    return create_app(Shelf(Store(store))).test_client()


def window(place: int, records: int, latency_ms: int | None) -> dict[str, int | None]:
    latency = None if latency_ms is None else latency_ms * 10**6
    timed = 0 if latency_ms is None else records
    start = (FIRST_S + place) * S
    told = {"window_start_ns": start, "records": records, "timed": timed}
    return {**told, **dict.fromkeys(NAMES, latency)}


def keep(store: Path, *windows: dict[str, int | None]) -> None:
    live = Live("s3://bucket/<orders>", S, time.time(), ())
    keep_live(store / FOLDER / "orders", live.with_windows(windows, time.time()))


def page(store: Path, path: str = "/live/orders", status: int = 200) -> str:
    answer = client_of(store).get(path)
    assert answer.status_code == status
    return answer.text


def test_the_page_shows_windows_and_renews_itself(tmp_path: Path) -> None:
    keep(tmp_path, window(0, 10, 250), window(3, 1234, None))
    text = page(tmp_path)
    assert '<meta http-equiv="refresh"' in text
    assert "s3://bucket/&lt;orders&gt;" in text
    assert text.count('class="plot"') == 2
    assert "records / s" in text
    assert text.count("time of append, s") == 2
    assert "22:13:23" in text  # the window without latencies, in UTC
    assert "1 234" in html.unescape(text)
    keep(tmp_path, window(4, 77, 3))
    assert "77" in page(tmp_path)


def test_a_log_without_windows_or_times_has_a_page(tmp_path: Path) -> None:
    keep(tmp_path)
    assert "<svg" not in page(tmp_path)
    keep(tmp_path, window(0, 5, None))
    assert page(tmp_path).count('class="plot"') == 1


def test_live_logs_are_listed_and_others_are_not_there(tmp_path: Path) -> None:
    assert "python -m analysis.live" in page(tmp_path, "/live")
    assert "/live" not in page(tmp_path, "/")
    keep(tmp_path, window(0, 5, None))
    assert 'href="/live"' in page(tmp_path, "/")
    assert 'href="/live/orders"' in page(tmp_path, "/live")
    for name in ("none", "..", "%2e%2e", "orders%2f..%2f.."):
        page(tmp_path, f"/live/{name}", status=404)
