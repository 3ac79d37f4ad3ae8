"""The pages of docs/learn: each command says what it must, a node that fails does so in words of the page."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from bench import glomers as challenges
from bench.commands.glomers import glomers
from bench.commands.test import test as command
from bench.options import TestOptions, from_flags
from bench.sweep import plan
from runs.facts import EMBEDDED, Results, Settings, Told
from runs.figures import measure
from runs.sweeps import INVALID, UNKNOWN, VALID, Row
from simulation.commands.explore import explore
from simulation.nodes import new_session
from specs.check import main as check
from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun, judged, verdict_of

LEARN = ROOT / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[1-9]-*.md"))
BLOCK = re.compile(r"```\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"^ {4,}(?:\./|\.venv/bin/python -m )(\S.*)", re.MULTILINE)
OTHER_LANGUAGE = re.compile(r"unique_ids\.js|echo\.sh")
NOT_DURABLE = "a node lacks an acknowledged message after a kill."
# What the commands of a page say, in its order.
SAID = {
    "1-echo": ["✘ wrong-echo", "✔ VALID", "1 passes; right at 1000 a second on 5 nodes."],
    "2-unique-ids": [
        "✘ duplicated",
        "✔ VALID",
        "2 passes; right after a kill, after a pause.",
        "✘ duplicated",
    ],
    "3-broadcast": ["✘ lost", *[f"passes; right .*{NOT_DURABLE}"] * 3, "✘ lost"],
    "4-counter": [
        "✘ wrong-sum",
        "4 passes; right after a kill",
        "4 passes; .*a node shows a wrong sum at the end after a kill.",
    ],
    "5-log": [
        "✘ inconsistent-offsets",
        "5c passes; .*not durable: an acknowledged message is gone after a kill.",
        "5c passes; right .*after a kill.",
        "5c fails: a reader misses messages",
    ],
    "6-transactions": ["✘ G1a", "6c passes; right at 100 ms a hop, after a kill.", "✘ lost-update"],
    "teaching": [
        "3c passes by luck: right on 1 of 3 seeds, else a node lacks an acknowledged message",
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
    """Its commands, each on one line."""
    return COMMANDS.findall(re.sub(r" \\\n\s*", " ", page.read_text()))


def options_of(line: str) -> TestOptions:
    """What `./maelstrom test` makes of a command."""
    return from_flags(command.make_context("test", shlex.split(line)[2:]).params)


def run_of(chosen: TestOptions, seed: str) -> VirtualRun:
    """A run of `./maelstrom test`, on the virtual clock."""
    options: dict[str, Any] = {each.name: getattr(chosen, each.name) for each in fields(chosen)}
    if Path(chosen.bin).name == "run.sh":
        strategy = chosen.args[1] if chosen.args else "leaderless"
        return VirtualRun(
            make=lambda _name, start: new_session(strategy, start), **options | {"seed": seed}
        )
    return VirtualRun(make=node_of(Path(chosen.bin), *chosen.args), **options | {"seed": seed})


def grade_of(line: str, seeds: int) -> str:
    """The sentence of `./maelstrom glomers`, of runs on the virtual clock."""
    given = glomers.make_context("glomers", shlex.split(line)[2:]).params
    changes = {"bin": str(ROOT / given["program"]), "args": shlex.join(given["args"])}
    changes |= {"topology": given["topology"]} if given["topology"] else {}
    chosen = challenges.read(given["challenge"], seeds, changes)
    rows = []
    for job in plan.jobs(chosen.sweep, EMBEDDED):
        seed = job.sweep + f"-{job.repetition}" * (job.repetition > 1)
        run = run_of(job.cell.options, seed)
        results = Results(judged(run).results)
        told = Told(Settings("", time_limit_s=run.options.time_limit_s), results)
        events = map(orjson.loads, run.journal_file.content.splitlines())
        row = Row(job.sweep, dict(job.cell.axes), job.repetition, job.engine, "run")
        verdict = {True: VALID, False: INVALID}.get(results.content["valid?"], UNKNOWN)
        figures = measure(run.history, events, told).numbers
        rows.append(replace(row, verdict=verdict, figures=figures, anomalies=results.invalidating))
    return challenges.verdict(chosen.number, challenges.grade(chosen, rows))


def said_by(line: str, folder: Path) -> str:
    """What a command of a page prints, in another folder if it runs a program of another language."""
    tool, *words = shlex.split(line)
    if tool == "specs.check":
        return CliRunner().invoke(check, words).output
    if words[0] == "explore":
        return CliRunner().invoke(explore, [*words[1:], "--out", str(folder)]).output
    if words[0] == "glomers":
        return grade_of(line, 3 if "lucky" in line else 1)
    if not OTHER_LANGUAGE.search(line):
        return verdict_of(run_of(options_of(line), "1"))
    (folder / "workloads").symlink_to(ROOT / "workloads")
    script = (ROOT / "workloads/examples/unique_ids.js").read_text()
    (folder / "unique_ids.js").write_text(script.replace("-${started}", ""))
    (folder / "unique_ids.js").chmod(0o755)
    more = ["--no-pictures", "--store", folder / "results"]
    done = subprocess.run(
        [ROOT / tool, *words, *more], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout


def each_command() -> Iterator[object]:
    for page in SAID:
        for number, line in enumerate(commands_of(LEARN / f"{page}.md")):
            marks = [pytest.mark.tlc] if line.startswith("specs") else []
            marks += [pytest.mark.slow] if "glomers" in line else []
            if OTHER_LANGUAGE.search(line):
                marks = [pytest.mark.process, pytest.mark.slow]
                marks += [
                    pytest.mark.skipif(".js" in line and not which("node"), reason="no Node.js")
                ]
            yield pytest.param(page, number, line, id=f"{page}-{number + 1}", marks=marks)


@pytest.mark.parametrize(("page", "number", "line"), list(each_command()))
def test_each_command_says_what_it_must(
    page: str, number: int, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    said = said_by(line, tmp_path)
    assert re.search(SAID[page][number], said), f"{SAID[page][number]!r} is not in\n{said}"


def test_every_page_and_command_has_its_words() -> None:
    counts = {page.stem: len(commands_of(page)) for page in LEARN.glob("*.md")}
    assert counts == {page: len(words) for page, words in SAID.items()}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_the_bench_says_of_the_failing_node_what_the_chapter_says(
    chapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    said = verdict_of(run_of(options_of(commands_of(chapter)[0]), "1"))
    (words,) = BLOCK.findall(chapter.read_text())
    for line in words.strip().splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert re.search(pattern, said), f"{line!r} is not in\n{said}"


def test_each_chapter_leads_to_the_next() -> None:
    for chapter, following in pairwise([*CHAPTERS, LEARN / "teaching.md"]):
        assert "Next: [" in chapter.read_text()
        assert f"]({following.name})" in chapter.read_text()
