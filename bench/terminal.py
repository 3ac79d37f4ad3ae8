"""What reaches a terminal: no text of a history, a node or a file may steer it.

Control and format characters (such as ESC, or U+202E, which turns the direction of writing), separators of
lines and paragraphs, and lone surrogates stand as the escapes that JSON and EDN share. The command `leaderless`
has the same rule.
"""

import re
import unicodedata
from collections.abc import Iterable

import click
from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

STEERING = {"Cc", "Cf", "Zl", "Zp", "Cs"}  # categories of Unicode
_NOT_PLAIN = re.compile(r"[^ -~\n\t]")


def shown(text: str) -> str:
    """Return the text with escapes for all that could steer a terminal but tabs and line breaks."""
    return _NOT_PLAIN.sub(_shown, text)


def say(text: str, *, err: bool = False) -> None:
    """Print a text as a line to stdout, or to stderr."""
    click.echo(shown(text), err=err)


class Console(console.Console):
    """Rich's console, in which only rich itself steers the terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, and escape what is text: before it is wrapped, if it is a `Text`."""
        if isinstance(renderable, Text) and not renderable.plain.isprintable():
            renderable = renderable.copy()
            renderable.plain = shown(renderable.plain)
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text), style, control)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in STEERING:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
