"""Errors that are shown to people as they are."""


class AnalysisError(Exception):
    """An error that the user can correct; the message says what is wrong and what to do."""
