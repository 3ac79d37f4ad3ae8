"""`./maelstrom new`: the file of a first node, which the reader changes."""

import shlex
from pathlib import Path

import click

from bench.flags import OneOf
from runs.house import EXAMPLES, MAELSTROM

ENDINGS = {"python": ".py", "javascript": ".js", "go": ".go", "shell": ".sh"}


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="NODE.py")
@click.option(
    "--language",
    type=OneOf(tuple(ENDINGS)),
    help="Its language.  [default: that of the file's ending; else python]",
)
def new(file: Path, language: str | None) -> None:
    """Write a node that answers `echo`, as a beginning, and what it imports beside it."""
    by_name = (name for name, ending in ENDINGS.items() if ending == file.suffix)
    ending = ENDINGS[language or next(by_name, "python")]
    file = file if file.suffix else file.with_suffix(ending)
    kit = EXAMPLES / f"maelstrom_node{ending}"
    beside = file.with_name(kit.name)
    try:
        node = (EXAMPLES / f"echo{ending}").read_bytes()
        has_kit = kit.stem.encode() in node
        with file.open("xb") as written:
            written.write(node)
        file.chmod(0o755)
        if has_kit and not beside.exists():
            beside.write_bytes(kit.read_bytes())
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror}.") from None
    program = shlex.quote(str(file.with_suffix("") if ending == ".go" else file))
    sources = shlex.join(map(str, [file, beside][: 1 + has_kit]))
    build = f"Build it: go build -o {program} {sources}\n" * (ending == ".go")
    click.echo(
        f"{build}Judge it: {MAELSTROM} test -w echo --bin {program} --node-count 1 --time-limit 4\n"
        f"What else is asked of a node: {MAELSTROM} doc"
    )
