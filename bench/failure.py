"""What ends a run before its time, told so that a person knows what to do."""


class RunFailure(Exception):
    """The run cannot go on. `str(failure)` is the whole report; `interrupted` when the user asked."""

    def __init__(self, report: str, *, interrupted: bool = False) -> None:
        super().__init__(report)
        self.interrupted = interrupted


def indent(text: str, by: str = "  ") -> str:
    """The text with each line indented, for quoting in a report."""
    return "\n".join(by + line for line in text.splitlines())


def clip(text: str, limit: int = 2000) -> str:
    """The text, or its beginning with a note of how much was left out."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters in all)"
