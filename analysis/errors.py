"""Errors that are shown to people as they are."""

from runs.files import RunsError


class AnalysisError(RunsError):
    """An error that the user can correct; the message says what is wrong and what to do."""


class Interrupted(AnalysisError):
    """The user pressed Ctrl-C."""
