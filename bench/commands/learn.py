"""`./maelstrom learn`: the chapters, and the nodes of theirs that fail and that pass."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from runs.house import HOUSE, START

COPIED = ("docs", "tests/nodes", "workloads/examples", "bench/sweep")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def learn(folder: Path) -> None:
    """Write the chapters into a new folder, with all nodes that they run, as a beginning for yours.

    There are all pages, too, and ./maelstrom and ./run.sh, so that each command can be copied from a page.
    """
    ignored = shutil.ignore_patterns("__pycache__", "interface.py", "pictures.py", "explorer.html")
    starts = {"maelstrom": START, "run.sh": [sys.executable, str(HOUSE / "node.py")]}
    try:
        folder.mkdir(parents=True)
        for name in COPIED:
            shutil.copytree(HOUSE / name, folder / name, ignore=ignored)
        for name, words in starts.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (folder / name).chmod(0o755)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error.strerror}.") from None
    click.echo(f"Read {folder / 'docs/learn/1-echo.md'}, and run its commands in {folder}.")
