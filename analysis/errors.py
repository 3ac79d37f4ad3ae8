"""Errors that are shown to people as they are."""


class AnalysisError(Exception):
    """Something the user can mend; the message says what was wrong and what to do."""
