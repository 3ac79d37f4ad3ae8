"""`./maelstrom new`: the file of a first node, which the reader changes."""

import shlex
import shutil
from pathlib import Path

import click

from bench.flags import OneOf
from runs.house import EXAMPLES, MAELSTROM

# The example of a language, and what it needs beside it.
LANGUAGES = {
    "python": ("echo.py", "maelstrom_node.py"),
    "javascript": ("echo.js",),
    "go": ("echo.go",),
    "shell": ("echo.sh",),
}
_BY_ENDING = {Path(first).suffix: name for name, (first, *_) in LANGUAGES.items()}


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="NODE.py")
@click.option(
    "--language",
    type=OneOf(tuple(LANGUAGES)),
    help="Its language.  [default: by the ending of the file; else python]",
)
def new(file: Path, language: str | None) -> None:
    """Write a node that answers `echo`, as a beginning; one in Python gets maelstrom_node.py beside it."""
    chosen = language or _BY_ENDING.get(file.suffix, "python")
    first, *beside = LANGUAGES[chosen]
    if file.exists():
        raise click.UsageError(f"{file} is there already: give another name.")
    try:
        shutil.copyfile(EXAMPLES / first, file)
        file.chmod(0o755)
        for kit in beside:
            if not file.with_name(kit).exists():
                shutil.copyfile(EXAMPLES / kit, file.with_name(kit))
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}.") from None
    program = file
    if chosen == "go":
        program = file.with_suffix("")
        click.echo(f"Build it:   go build -o {shlex.quote(str(program))} {shlex.quote(str(file))}")
    words = f"test -w echo --bin {shlex.quote(str(program))} --node-count 1 --time-limit 4"
    click.echo(f"Judge it:   {MAELSTROM} {words}")
    click.echo(f"What to do: {MAELSTROM} doc echo, {MAELSTROM} learn FOLDER")
