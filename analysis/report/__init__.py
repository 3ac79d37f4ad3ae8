"""One self-contained HTML page about a run."""

from analysis.report.page import render, write_report

__all__ = ["render", "write_report"]
