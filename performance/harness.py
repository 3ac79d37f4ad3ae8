"""What all measurements share: options, spread, tables, pages, servers.

A program is one question. It says what it compares; the rest is here.
"""

import os
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import click

from bench.stores.run_store import ENDPOINTS, store_server
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.urls import open_store

ROOT = Path(__file__).parents[1]
A_PATH = click.Path(path_type=Path)

Measured = dict[str, float]


# ------------------------------------------------------------ a program


def program(doc: str | None) -> Callable[[Callable[..., None]], click.Command]:
    """Decorate the function of a program as its command; the help is the docstring of the module."""
    # Commands keep their lines.
    about = re.sub(r"\n\n(?= {4})", "\n\n\b\n", doc or "")
    return click.command(help=about, context_settings={"show_default": True})


def spread(values: Iterable[float], form: str) -> str:
    """Write the median of some figures, and in brackets the least and the greatest."""
    found = sorted(values)
    return f"{statistics.median(found):{form}} ({found[0]:{form}} to {found[-1]:{form}})"


# ------------------------------------------------------------ tables and pages


def table_lines(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a Markdown table, in which all columns but the first are aligned right."""
    for cells in chain((titles, ["---", *["---:"] * (len(titles) - 1)]), rows):
        yield f"| {' | '.join(cells)} |"


def show_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Print a Markdown table, each row as soon as it is measured, and return its lines."""
    return show(table_lines(titles, rows))


def show(lines: Iterable[str]) -> list[str]:
    """Print lines as they come, and return them."""
    shown = []
    for line in lines:
        click.echo(line)
        shown.append(line)
    return shown


def command_lines(command: str) -> str:
    """A command as a block of Markdown, in lines that can be copied."""
    lines = textwrap.wrap(command, 88, break_long_words=False, break_on_hyphens=False)
    return "    " + " \\\n        ".join(lines)


def write_page(page: Path, title: str, measured: str, text: str) -> None:
    """Write a page of docs/performance that is wholly generated, `measured` as `performance.age.line` says.

    Its folder is made when it is missing.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    about = "Generated, never edited. [How it is measured, and what it means](README.md)."
    # A command at the beginning keeps its indent.
    page.write_text("\n".join([f"# {title}", "", about, measured, "", text.strip("\n"), ""]))


def replace_section(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put lines between the comments of a page that begin and end a section.

    Raises `ValueError` without them.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not end:
        raise ValueError(f"{page} has no section {name}")
    page.write_text(before + begin + "\n".join([*lines, end + after]), encoding="utf-8")


# ------------------------------------------------------------ servers


@contextmanager
def store_of(name: str) -> Iterator[str]:
    """The URL of an empty store that the bench starts (`bench.stores.names`); keys are in the environment."""
    with TemporaryDirectory() as folder, store_server(name, Path(folder)) as server:
        address = "{}:{}".format(*server.address) if server.address else ""
        with patch.dict(os.environ, server.environment(address)):
            yield server.url(address)


def open_at(url: str) -> Store:
    """The store at the URL of a file, or of `store_of`."""
    endpoint = os.environ.get(ENDPOINTS[0]) if url.startswith("s3:") else None
    return open_store(url, StoreOptions(endpoint, timeout_s=60.0))
