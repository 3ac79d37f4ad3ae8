"""The files of a run that has just been judged: test.json, history.edn, results, plots and diagrams."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.options import TestOptions
from bench.verdict.judgement import Judgement
from runs import edn
from runs.files import HISTORY_EDN, JOURNAL, RESULTS_EDN, RESULTS_JSON
from runs.history import Op, edn_line, plain, printable
from runs.writing import compress_if_large, write_whole
from workloads.interface import Finding

_VERSIONED = ("leaderless", "orjson", "click", "rich", "matplotlib")


def describe_test(options: TestOptions, started: datetime) -> dict[str, Any]:
    """The content of test.json: options with the seed, versions, command line, the load of the machine."""
    versions: dict[str, str | None] = dict.fromkeys(_VERSIONED)
    for name in _VERSIONED:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return options.as_dict() | {
        "engine": "embedded",
        "started": started.isoformat(timespec="milliseconds"),
        "argv": sys.argv[1:],
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version(), **versions},
    }


def write_results(run_dir: Path, judgement: Judgement) -> None:
    """Write history.edn, results.edn and results.json (`OSError` when the disk is full)."""
    content = printable(judgement.results)
    write_json(run_dir / RESULTS_JSON, content)
    write_whole(run_dir / RESULTS_EDN, [edn.dumps(content, pretty=True), "\n"])
    write_whole(run_dir / HISTORY_EDN, (edn_line(op) + "\n" for op in judgement.history))
    compress_if_large(run_dir / JOURNAL)


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people: indented, anything foreign as text."""
    write_whole(path, [json.dumps(content, indent=2, default=plain), "\n"])


def draw(
    console: Console,
    run_dir: Path,
    history: list[Op],
    test: Mapping[str, Any],
    findings: Sequence[Finding] = (),
) -> None:
    """Draw plots and diagrams; the timeline shows what the findings rest on.

    A failure is reported and changes nothing else. Ctrl-C skips them.
    """
    from runs.plots.run import draw_all

    anomalies = {each.type: [op.index for op in each.witness] for each in findings}
    try:
        drawn = draw_all(run_dir, history, test, anomalies)
    except KeyboardInterrupt:
        console.print("Drawing was interrupted.", style="yellow")
        return
    for name, artefact in drawn.items():
        if isinstance(artefact, Exception):
            console.print(f"{name} could not be drawn: {artefact}", style="yellow")
