"""Plays a transcript of the pages of a store.

> store                             three runs of the bench, one of the real tool, a sweep; pages were seen
> store fresh                       the same, and no page was seen
> empty                             a store without runs
> change $first/test.json {"a":1}   fields of a file change; `$second`, `$third` and `$real` are runs, too
> write $first/history.jsonl TEXT   a file holds this text, with Python's escapes; `append`: at its end
> remove $first/results.json        a file goes; `block`: a folder stands in its place
> large $first/history.jsonl        it has 500 MiB of nothing; `pack`: it is compressed
> part 100                          a page shows so many operations of a timeline
> link mine/run $first              a run of another store is a link to one here
> outside $first/history.jsonl TEXT a file, or all of a folder, is a link to one outside that holds this text
> report $first TEXT                the lines of a run's report that have a text; then what is outside
> live [[0,10,250]]                 windows of the log `orders`: place, number of records, latency in ms
> age $first                        everything in a folder was written long ago
> clock 5                           seconds have passed since then; `budget 0`: those that a list may take
> see /run/$first TEXT              the lines of a page in which a text stands, without their tags
> find /run/$first PATTERN          what a pattern finds in the source of a page, or its group
> count /run/$first TEXT            how often a text stands in the source of a page
> open /run/$first                  status, kind, and what a browser may do with it
> runs verdict=valid                the runs in the list, in its order
"""

import gzip
import html
import json
import math
import re
import shutil
import tempfile
from contextlib import ExitStack, nullcontext
from pathlib import Path
from string import Template
from unittest.mock import patch

from flask.testing import FlaskClient

from bench.pages import app
from bench.pages.report import write_report
from runs.plots.picture import Picture
from tests.datadriven.commands import unescaped
from tests.datadriven.runner import NOTHING, Player
from tests.pages.page_stores import (
    FIRST,
    NOW_S,
    REAL,
    SECOND,
    THIRD,
    age,
    client_of,
    keep,
    listed,
    make_store,
    not_drawn,
    window,
)

RUNS = {"first": FIRST, "second": SECOND, "third": THIRD, "real": REAL}
LOOKS = ("see", "find", "count", "open", "runs")  # they change nothing
INLINE = "a|b|code|em|span|strong|sup|title"  # tags that end no line


class Pages(Player):
    """Carries commands out on one store."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: dict[str, str] = {}
        self._asked: FlaskClient | None = None

    def play(self, text: str) -> str:
        with ExitStack() as self._stack:
            self._folder = self._stack.enter_context(tempfile.TemporaryDirectory())
            self._empty()
            return super().play(text)

    def command(self, command: str) -> list[str]:
        name, *words = Template(command).safe_substitute(RUNS).split(" ", 2)
        if name not in LOOKS:
            self._pages.clear()
            self._asked = None
        lines: list[str] = getattr(self, f"_{name}")(*words) or [NOTHING]
        names = {str(self._root): "STORE"} | {run: f"${name}" for name, run in RUNS.items()}
        pattern = "|".join(map(re.escape, names))
        return [re.sub(pattern, lambda found: names[found[0]], line)[:200] for line in lines]

    def _empty(self) -> None:
        self._root = Path(tempfile.mkdtemp(dir=self._folder))
        self._now_s, self._budget_s = NOW_S, math.inf

    def _store(self, seen: str = "") -> None:
        self._empty()
        self._root = make_store(self._root, seen=seen != "fresh")

    def _change(self, path: str, fields: str) -> None:
        file = self._root / path
        file.write_text(json.dumps(json.loads(file.read_text()) | json.loads(fields)))

    def _write(self, path: str, text: str = "") -> None:
        (self._root / path).parent.mkdir(parents=True, exist_ok=True)
        (self._root / path).write_text(unescaped(text))

    def _append(self, path: str, text: str) -> None:
        self._write(path, (self._root / path).read_text() + text)

    def _remove(self, path: str) -> None:
        (self._root / path).unlink()

    def _block(self, path: str) -> None:
        (self._root / path).mkdir()

    def _large(self, path: str) -> None:
        with (self._root / path).open("wb") as file:
            file.truncate(500 * 2**20)

    def _part(self, count: str) -> None:
        self._stack.enter_context(patch.object(app, "PART", int(count)))

    def _pack(self, path: str) -> None:
        content = (self._root / path).read_bytes()
        (self._root / f"{path}.gz").write_bytes(gzip.compress(content))
        self._remove(path)

    def _link(self, path: str, run: str) -> None:
        link = self._root.parent / path
        link.parent.mkdir()
        link.symlink_to(self._root / run)
        self._root = link.parent

    def _outside(self, path: str, text: str) -> None:
        there, link = Path(tempfile.mkdtemp(dir=self._folder)) / "n0.log", self._root / path
        there.write_text(unescaped(text))
        shutil.rmtree(link) if link.is_dir() else link.unlink(missing_ok=True)
        link.symlink_to(there if link.suffix else there.parent)
        self._there = there

    def _report(self, path: str, text: str) -> list[str]:
        page = write_report(self._root / path).read_text()
        return [line for line in page.splitlines() if text in line] + [
            self._there.read_text().rstrip()
        ]

    def _live(self, windows: str) -> None:
        keep(self._root, *(window(*each) for each in json.loads(windows)))

    def _age(self, path: str) -> None:
        age(self._root / path)

    def _clock(self, seconds: str) -> None:
        self._now_s = float(seconds)

    def _budget(self, seconds: str) -> None:
        self._budget_s = float(seconds)

    def _runs(self, query: str = "") -> list[str]:
        return listed(self._client(), query)

    def _open(self, address: str) -> list[str]:
        answer = self._client().get(address)
        policy = answer.headers.get("Content-Security-Policy", "")
        rights = " sandboxed" * ("sandbox" in policy)
        answer.close()
        return [f"{answer.status_code} {answer.mimetype}{rights}"]

    def _find(self, address: str, pattern: str) -> list[str]:
        return re.findall(pattern, self._source(address))

    def _count(self, address: str, text: str) -> list[str]:
        return [str(self._source(address).count(text))]

    def _see(self, address: str, text: str) -> list[str]:
        page = re.sub(rf"</?(?:{INLINE})\b[^>]*>", "", self._source(address))
        lines = [" ".join(html.unescape(line).split()) for line in re.split(r"<[^>]*>", page)]
        return [line for line in dict.fromkeys(lines) if text in line][:2]

    def _client(self) -> FlaskClient:
        self._asked = self._asked or client_of(self._root, self._now_s, self._budget_s)
        return self._asked

    def _source(self, address: str) -> str:
        if address not in self._pages:
            of_a_run = patch.object(Picture, "svg_document", not_drawn)
            with of_a_run if address.startswith("/run/") else nullcontext():
                answer = self._client().get(address)
            self._pages[address] = answer.text
            answer.close()
        return self._pages[address]
