"""Which bench runs a test: the embedded one, or the real Maelstrom.

`MAELSTROM` in the environment names the real one (its `maelstrom` script, or the folder that has it);
`--engine` overrides. The real one is started in place of this process, with the flags that it knows.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bench.nemesis.fault import MIXED
from bench.nemesis.partitions import REAL_SHAPES
from bench.options import FLAGS
from runs.facts import EMBEDDED

# Those of its main branch since July 2026; an older one refuses the others itself.
_REAL_FAULTS = ("partition", "kill", "pause")


def choose(asked: str | None, environment: dict[str, str]) -> Path | None:
    """The real tool's script when it is to be used, else None. Raises `click.UsageError` without one."""
    named = environment.get("MAELSTROM")
    if asked == EMBEDDED or (asked is None and not named):
        return None
    if not named:
        raise click.UsageError(
            "--engine jepsen needs the real Maelstrom, and the environment variable MAELSTROM names"
            " none.\nIt runs on Java 17 or newer, with graphviz and gnuplot for its plots. Unpack"
            " maelstrom.tar.bz2 from\nhttps://github.com/jepsen-io/maelstrom/releases and set"
            " MAELSTROM to its `maelstrom` script."
        )
    script = Path(named).expanduser()
    script = script / "maelstrom" if script.is_dir() else script
    if not os.access(script, os.X_OK):
        raise click.UsageError(f"MAELSTROM: {script} is no program. Name Maelstrom's own script.")
    if not shutil.which("java"):
        raise click.UsageError("Maelstrom needs Java 17 or newer: apt-get install default-jre")
    return script.absolute()


def refuse_our_faults(flags: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` when the real tool is asked for faults that it does not have."""
    targets, shapes = flags["nemesis_targets"], flags["partition_shapes"]
    for word, values in {
        "--nemesis": [fault for fault in flags["nemesis"] if fault not in _REAL_FAULTS],
        "--nemesis-targets": [] if targets == MIXED else [targets],
        "--partition-shapes": [] if set(shapes) == set(REAL_SHAPES) else shapes,
    }.items():
        if values:
            raise click.UsageError(
                f"{word} {','.join(values)}: the real Maelstrom has only --nemesis"
                f" {','.join(_REAL_FAULTS)}, with nodes and shapes that it draws itself. Leave it out, or"
                " use --engine embedded."
            )
    if flags["store_server"]:
        raise click.UsageError(
            "--store-server: the real Maelstrom starts no store. Start one, and name it to the node:"
            " -- --store URL, with a prefix of its own for each run (docs/log/node.md)."
        )


def real_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line without our own flags; arguments after `--` stay as they are."""
    ours = {word: flag for flag in FLAGS.values() if flag.ours for word in flag.words}
    passed: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*passed, word, *rest]
        name, has_value = word.partition("=")[0], "=" in word
        if name not in ours:
            passed.append(word)
        elif not (ours[name].is_switch or has_value) and rest:
            rest.pop(0)
    return passed
