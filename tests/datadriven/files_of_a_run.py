"""Plays a transcript of files of a run, and of what is made of them: rows of the lake, figures, a timeline.

    > run demo cell kafka              a new folder, in these
    > history 0 invoke 0 send [["send","k",1]]; 5ms fail 0 send error="x"
                                       its lines: ns or ms, type, process, f, value, fields
    > history x9 $ms invoke 0 read; $ms ok 0 read $         nine times; `$` is 0 to 8
    > journal 0 send 7 c1>n0 send msg_id=1; 4 recv 7 c1>n0 send
                                       its lines: ns, `send`, `recv` or `both`, message, link, body
    > journal 0 send 7 c1>n0 send x9   the same nine times, each one ns and one message later
    > file results.json {"valid?":true}     any file, with Python's escapes
    > rows operations outcome node     a table of the lake, without Spark: these columns; `keys` begin every row
    > rows messages last=2 message_id  the last two rows
    > rows keys program=mine program   of a run that whoever reads it in calls so
    > numbers send_p50_ms              numbers of the figures; all without a name
    > odd nodes=5                      what is odd in the figures of a run of so many nodes
    > asked                            the kinds of operations that are measured, the commonest first
    > notes                          what the figures leave out
    > figures causes cause message_count    a table of the figures
    > timeline limit=9 marks=0,1       its note, columns, faults, gaps, links and bars; of many bars some

Without columns a row is JSON.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from runs.figures import Figures, of_run
from runs.history import read_history
from runs.oddities import oddities
from runs.store import Folder
from tests.datadriven.runner import Player, chosen_of, json_of

Row = dict[str, Any]
# Parts of a timeline: its title, note and legend, links and where they lead, columns, faults, gaps, and bars.
PARTS = (
    "<h1>(.*?)</h1>",
    '<p class="note".*?>(.*?)</p>',
    r"(\w+ in force)",
    '<a href="(.*?)">(.*?)</a>',
    '<i id="(op-.*?)"',
    'title="(process .*?)"',
    'class="fault" title="(.*?)" style="(.*?);background',
    'class="gap" style="(.*?)"><span>(.*?)<',
    '<li class="(.*?)".*?style="(.*?)">.*?<span class="short".*?>(.*?)<',
)
BARS_MAX = 10
FIELD = re.compile(r"(\w+)=(.*)")


class FilesOfARun(Player):
    """Writes the files of one run after the other, and reads them."""

    def __init__(self) -> None:
        super().__init__()
        self._root = self._folder = Path()
        self._runs = 0
        self.commands |= {
            "run": self._run,
            "history": lambda words: self._write("history.jsonl", operations(words)),
            "journal": lambda words: self._write("net-journal.jsonl", events(words)),
            "file": self._file,
            "rows": self._rows,
            "numbers": self._numbers,
            "notes": lambda _: [*self._figures().notes],
            "odd": lambda words: oddities(self._figures(), int(chosen_of(words).get("nodes", 0))),
            "asked": lambda _: [*self._figures().asked()],
            "timeline": self._timeline,
            "figures": lambda words: shown(self._figures().table(words[0]), words[1:]),
        }

    def play(self, text: str) -> str:
        with TemporaryDirectory() as root:
            self._root = Path(root)
            return super().play(text)

    def _run(self, words: list[str]) -> list[str]:
        self._runs += 1
        self._folder = self._root.joinpath(f"{self._runs}", *words)
        self._folder.mkdir(parents=True)
        return []

    def _write(self, name: str, lines: Iterable[Row]) -> list[str]:
        (self._folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return []

    def _file(self, words: list[str]) -> list[str]:
        (self._folder / words[0]).write_text(" ".join(words[1:]).encode().decode("unicode_escape"))
        return []

    def _rows(self, words: list[str]) -> list[str]:
        from analysis.finding import find_runs
        from analysis.rows import read

        chosen = chosen_of(words)
        (run,) = find_runs(self._folder, chosen.get("program"))
        keys, rows = read(run, self._folder)
        found = [row for name, row in [("keys", keys), *rows] if name == words[0]]
        columns = [word for word in words[1:] if "=" not in word]
        return shown(found[-int(chosen.get("last", 0)) :], columns)

    def _figures(self) -> Figures:
        return of_run(Folder(self._folder, self._folder.name))

    def _numbers(self, words: list[str]) -> list[str]:
        numbers = self._figures().numbers
        return [f"{name} {cell(numbers.get(name, 'not asked'))}" for name in words or numbers]

    def _timeline(self, words: list[str]) -> list[str]:
        from runs.plots.timeline import timeline_html

        chosen = chosen_of(words)
        marks = [int(each) for each in chosen.pop("marks", "").split(",") if each]
        options: dict[str, Any] = {name: int(each) for name, each in chosen.items()}
        history = read_history(self._folder / "history.jsonl")
        anomalies = {"lost-write": marks} if marks else None
        page = timeline_html(history, "<script>kafka", anomalies=anomalies, **options)
        *others, bars = (found(pattern, page) for pattern in PARTS)
        ends = (0, len(bars) - 1)
        return [
            *(line for lines in others for line in lines),
            *(
                bar
                for at, bar in enumerate(bars)
                if len(bars) < BARS_MAX or at in ends or "marked" in bar
            ),
        ]


def found(pattern: str, page: str) -> list[str]:
    """What a pattern finds in a page, a line each."""
    cases = re.findall(pattern, page, re.DOTALL)
    texts = (each if isinstance(each, str) else " | ".join(each) for each in cases)
    return [" ".join(text.split()) for text in texts]


def operations(words: Sequence[str]) -> Iterator[Row]:
    """The lines of a history."""
    if words[0][0] == "x":
        pattern = " ".join(words[1:])
        words = [
            "; ".join(pattern.replace("$", f"{number}") for number in range(int(words[0][1:])))
        ]
    for index, item in enumerate(" ".join(words).split(";")):
        time, kind, process, f, *more = item.split()
        values = [json.loads(word) for word in more if not FIELD.fullmatch(word)]
        yield {
            "index": index,
            "time": nanoseconds(time),
            "type": kind,
            "process": int(process) if process.isdigit() else process,
            "f": f,
            "value": values[0] if values else None,
            **fields(more),
        }


def events(words: Sequence[str]) -> Iterator[Row]:
    """The lines of a journal."""
    for item in " ".join(words).split(";"):
        time, kind, number, link, type_, *more = item.split()
        src, dest = link.split(">")
        times = int(more.pop()[1:]) if more and more[-1][0] == "x" else 1
        body = {"type": type_, **fields(more)}
        for later in range(times):
            message = {"id": int(number) + later, "src": src, "dest": dest, "body": body}
            for half in ("send", "recv") if kind == "both" else (kind,):
                yield {"id": 0, "time": int(time) + later, "type": half, "message": message}


def fields(words: Sequence[str]) -> Row:
    """Those of the words that say NAME=JSON."""
    found = [FIELD.fullmatch(word) for word in words]
    return {each[1]: json.loads(each[2]) for each in found if each}


def nanoseconds(word: str) -> int:
    return round(float(word[:-2]) * 1e6) if word.endswith("ms") else int(word)


def shown(rows: Iterable[Row], columns: Sequence[str]) -> list[str]:
    """Rows as lines: these columns, or all of them by name."""
    return [
        " | ".join(cell(row.get(name)) for name in columns) if columns else json_of(row)
        for row in rows
    ]


def cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json_of(float(f"{value:.6g}") if isinstance(value, float) else value)
