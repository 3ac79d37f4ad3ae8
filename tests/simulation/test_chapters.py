"""The pages of docs/learn: each command says what it must, a node that fails does so in words of the page."""

import re
import shlex
import subprocess
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import orjson
import pytest
from click.testing import CliRunner

from bench.commands.glomers import glomers
from bench.options import TestOptions
from bench.sweep import making
from bench.sweep.jobs import Job
from bench.verdict.last_line import exit_status
from runs.facts import Results, Settings, Told
from runs.figures import measure
from runs.sweeps import Row, verdict_of
from simulation.commands.explore import explore
from simulation.nodes import new_session
from simulation.strangers import Drawn
from specs.check import main as check
from tests import toy_log
from tests.programs import need
from tests.scripted import ROOT, node_of
from tests.simulation.test_printed_commands import options_of
from tests.toy_log import VirtualRun

LEARN = ROOT / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[1-9]-*.md"))
BLOCK = re.compile(r"```\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"^ {4,}(?:\./maelstrom|\.venv/bin/python -m) (\S.*)", re.MULTILINE)
TOOLS = {"explore": explore, "glomers": glomers, "specs.check": check}
MORE = {"explore": "--out {}", "glomers": "--store {} --seeds {}", "specs.check": ""}
OTHER_LANGUAGE = re.compile(r"unique_ids\.js|echo\.sh")
LIMIT_S = 8  # of a run of a challenge: enough for faults, grades and what a page says of them
NOT_DURABLE = "a node lacks an acknowledged message after a kill."
# What the commands of a page say, in its order; of a chapter the first one says the page's own block.
SAID = {
    "1-echo": ["", "✔ VALID", "1 passes; right at 1000 a second on 5 nodes."],
    "2-unique-ids": ["", "✔ VALID", "2 passes; right after a kill, after a pause.", "✘ duplicated"],
    "3-broadcast": ["", *[f"passes; right .*{NOT_DURABLE}"] * 3, "✘ lost"],
    "4-counter": [
        "",
        "4 passes; right after a kill",
        "4 passes; .*a node shows a wrong sum at the end after a kill.",
    ],
    "5-log": [
        "",
        "5c passes; .*not durable: an acknowledged message is gone after a kill.",
        "5c passes; right .*after a kill.",
        "5c fails: a reader misses messages",
    ],
    "6-transactions": ["", "6c passes; right at 100 ms a hop, after a kill.", "✘ lost-update"],
    "7-raft": [
        "",
        "7 passes; right at 100 ms a hop, after a pause, after a kill, when members change.",
    ],
    "teaching": [
        "3c fails: right on 1 of 3 seeds only, else a node lacks an acknowledged message",
        "✔ VALID",
        "✘ unreplicated",
        "✘ nonlinearizable",
        "✘ G0",
        "✘ int-poll-skip",
        "✘ unseen(.|\n)*2. n0 is killed, and starts again",
        r"28. compactor>bucket put (k/index/0*2) is (.|\n)*39. p2>bucket put \1 is",
        r"violation of CommittedOnce(.|\n)*lockOwner\[t1\] = None(.|\n)*lockOwner\[t1\] = w2",
    ],
}


def commands_of(page: Path) -> list[str]:
    """Its commands, each on one line, without the program that they begin with."""
    return COMMANDS.findall(re.sub(r" \\\n\s*", " ", page.read_text()))


def run_of(chosen: TestOptions, seed: str = "1") -> VirtualRun:
    """A run of `./maelstrom test`, on the virtual clock."""
    options = {each.name: getattr(chosen, each.name) for each in fields(chosen)} | {"seed": seed}
    drawn = Drawn(Path(chosen.bin))
    make = node_of(Path(chosen.bin), *chosen.args, drawn=drawn)
    if chosen.bin.endswith("run.sh"):  # its only option here is the strategy
        strategy = ("leaderless", *chosen.args)[-1]
        make = lambda _name, start: new_session(strategy, start)  # noqa: E731
    with drawn.in_force():
        return VirtualRun(make=make, **options)


def performed(most_s: float, job: Job, *_: object) -> Row:
    """A run of a challenge, on the virtual clock, of at most so many seconds."""
    shorter = replace(job.cell.options, time_limit_s=min(job.cell.options.time_limit_s, most_s))
    run = run_of(shorter, job.sweep + f"-{job.repetition}" * (job.repetition > 1))
    results = Results(toy_log.judged(run).results)
    events = map(orjson.loads, run.journal_file.content.splitlines())
    told = Told(Settings("", time_limit_s=run.options.time_limit_s), results)
    figures, found = measure(run.history, events, told).numbers, results.invalidating
    ended = verdict_of(exit_status(results.content, None))
    row = (job.sweep, dict(job.cell.axes), job.repetition, job.engine, None, ended)
    return Row(*row, figures=dict(figures), anomalies=found)


def said_by(line: str, folder: Path) -> str:
    """What a command of a page prints; a program of another language runs in a folder with a changed one."""
    tool, *words = shlex.split(line)
    if tool in TOOLS:
        seeds, most_s = (3, 60) if "lucky" in line else (1, LIMIT_S)  # the page counts its seeds
        more = MORE[tool].format(folder, seeds)
        with patch.object(making, "perform", partial(performed, most_s)):
            return CliRunner().invoke(TOOLS[tool], shlex.split(more) + words).output
    if not OTHER_LANGUAGE.search(line):
        return toy_log.verdict_of(run_of(options_of(line)))
    if ".js" in line:
        need("node")
    (folder / "workloads").symlink_to(ROOT / "workloads")
    script = (ROOT / "workloads/examples/unique_ids.js").read_text()
    (folder / "unique_ids.js").write_text(script.replace("-${started}", ""))
    (folder / "unique_ids.js").chmod(0o755)
    whole = [str(ROOT / "maelstrom"), tool, *words, "--no-pictures", "--seed", "1"]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, check=False).stdout


REAL = (pytest.mark.process, pytest.mark.slow)
EACH = [
    pytest.param(
        *(page, line, words),
        id=f"{page.stem}-{number + 1}",
        marks=REAL
        if OTHER_LANGUAGE.search(line)
        else [pytest.mark.slow] * ("glomers" in line) + [pytest.mark.tlc] * ("specs" in line),
    )
    for page in [*CHAPTERS, LEARN / "teaching.md"]
    for number, (line, words) in enumerate(zip(commands_of(page), SAID[page.stem], strict=True))
]


@pytest.mark.parametrize(("page", "line", "words"), EACH)
def test_each_command_says_what_it_must(
    page: Path, line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    said, blocks = said_by(line, tmp_path), [] if words else BLOCK.findall(page.read_text())
    lines = [".*".join(map(re.escape, e.split("..."))) for b in blocks for e in b.splitlines()]
    for pattern in lines or [words or "no words and no block"]:
        assert re.search(pattern, said), f"{pattern!r} is not in\n{said}"


def test_each_chapter_leads_to_the_next() -> None:
    for chapter, following in pairwise([*CHAPTERS, LEARN / "teaching.md"]):
        assert "Next: [" in chapter.read_text()
        assert f"]({following.name})" in chapter.read_text()
