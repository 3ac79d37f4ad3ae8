"""What the page of a browser tab (`bench.pages.tab`) asks: a run, a seed, a smaller run; JSON in, JSON out.

CPython in WebAssembly runs this, with `stand_ins` for libraries that are not Python. Its hashes are not those
of a machine, so a node that goes through a set of texts may run otherwise there.
"""

import base64
import json
import shlex
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from bench.options import TestOptions
from bench.pages import lamport
from bench.pages.facts import failed_checks
from bench.pages.render import page
from bench.run import RunResult
from bench.terminal import Console
from bench.verdict import kept
from bench.verdict.checkers import judge
from bench.verdict.last_line import exit_status, last_line
from bench.verdict.printing import print_errors
from runs.files import HISTORY, JOURNAL
from runs.plots.lamport import first_messages, lamport_svg
from runs.reading import Bad, Budget, journal
from runs.store import Folder
from runs.sweeps import UNKNOWN, VALID, verdict_of
from runs.writing import LineFile
from simulation.commands.simulate_node import (
    command_of,
    options_of,
    run_seed,
    simulate_node,
    smallest,
    words_of,
)
from simulation.lock_step import is_on_the_python_kit
from simulation.strangers import KIT, NotSimulated, ScriptedRun

NODE = Path("node.py")
BUTTONS = ("seeds", "jobs", "shrink")  # options of the command for which the page has buttons
Answer = dict[str, Any]


def answer(question: str) -> str:
    """The answer to `{"ask", "node", "flags", "seed"}`; `error` says what is wrong with the question."""
    asked = json.loads(question)
    try:
        NODE.write_text(asked["node"], encoding="utf-8")
        is_on_the_python_kit.cache_clear()  # of another text in this file
        if not is_on_the_python_kit(NODE):
            raise NotSimulated(
                f"{NODE}: it must be Python that imports {KIT}; here is no other kit."
            )
        told = ASKED[asked["ask"]](_options(asked["flags"], asked["seed"]))
    except click.ClickException as error:
        told = {"error": error.format_message()}
    except Exception:
        told = {"error": f"The bench itself broke:\n{traceback.format_exc()}"}
    return json.dumps(told)


def _options(flags: str, seed: str) -> TestOptions:
    try:
        words = shlex.split(flags)
    except ValueError as error:
        raise click.UsageError(f"{flags}: {error}") from None
    given = simulate_node.make_context("simulate", ["--bin", str(NODE), *words]).params
    if used := [name for name in BUTTONS if given.pop(name)]:
        raise click.UsageError(f"--{used[0]}: this page has a button for it.")
    return replace(options_of(given), seed=seed)


def run(options: TestOptions) -> Answer:
    """The verdict of a run as HTML, with the diagram of its messages."""
    with TemporaryDirectory() as name:
        folder = Folder(Path(name), name)
        files = (LineFile(folder.path / each) for each in (HISTORY, JOURNAL))
        simulated = ScriptedRun(options, *files)
        outcome = simulated.execute()
        events = partial(journal, folder.journal, Bad(), Budget())
        found = judge(outcome, options, simulated.workload, events)
        shown = kept.shown(found.findings, found.place)
        drawn = next(filter(None, (lamport.draw(folder, each) for each in shown)), "")
        title = "The first messages after initialisation"
        picture = drawn or lamport_svg(first_messages(events()), title)
    verdict = verdict_of(exit_status(found.results, outcome.failure))
    checks = failed_checks(found.results, told=bool(found.findings))
    html = page(
        "tab_verdict.html.j2",
        facts={"verdict": verdict, "anomalies": shown, "checks": checks, "error": _error(outcome)},
        findings={"found": shown, "note": ""},
        told={each.type for each in shown},
        sentence=last_line(found.results, found.findings, outcome, is_odd=False),
        picture=base64.b64encode(picture.encode()).decode(),
        is_of_anomaly=bool(drawn),
        digest=simulated.digest,
        command=command_of(options),
    )  # fmt: skip
    return {"verdict": verdict, "digest": simulated.digest, "html": html}


def _error(outcome: RunResult) -> str:
    """Why the run was not finished, and the last errors of its nodes."""
    text, failure = StringIO(), str(outcome.failure or "")
    print_errors(Console(file=text, width=100), outcome.pipes, Path(), failure)
    return f"{failure}\n{text.getvalue()}".strip()


def seed(options: TestOptions) -> Answer:
    """The verdict of a seed in a word, and why."""
    found = run_seed(options)
    return {"verdict": found.verdict, "why": found.why, "digest": found.digest}


def shrink(options: TestOptions) -> Answer:
    """The options and the seed of a small run that fails alike."""
    found = run_seed(options)
    if found.verdict in (VALID, UNKNOWN):
        raise click.UsageError(
            f"Seed {options.seed} shows nothing wrong: there is nothing to shrink."
        )
    small = smallest(found)
    *flags, _, number = words_of(replace(small.options, args=()))[3:]
    after = ["--", *options.args] if options.args else []
    return {"operations": small.operations, "flags": shlex.join([*flags, *after]), "seed": number}


ASKED: dict[str, Callable[[TestOptions], Answer]] = {"run": run, "seed": seed, "shrink": shrink}
