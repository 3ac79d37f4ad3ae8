"""The page: a template filled with a summary's tables and plots."""

from pathlib import Path

import jinja2

from analysis import figures
from analysis.errors import AnalysisError
from analysis.report import plots
from analysis.summary import Summary

VERDICTS = {
    "true": "Valid: the checker found nothing wrong.",
    "false": "Invalid: the checker found anomalies.",
    "unknown": "Unknown: there is no verdict on this run.",
}


def write_report(summary: Summary, file: Path) -> Path:
    """Write the page of a run to `file`, and return it.

    Raises:
        AnalysisError: the folder cannot be written to.
    """
    try:
        file.write_text(render(summary), encoding="utf-8")
    except OSError as error:
        raise AnalysisError(
            f"cannot write the page: {error}; name another place with --output"
        ) from error
    return file


def render(summary: Summary) -> str:
    """The page as HTML that refers to nothing outside itself."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": figures.count,
        "ms": figures.milliseconds,
        "ratio": figures.ratio,
    }
    return environment.get_template("page.html.j2").render(
        summary=summary,
        run=summary.run,
        facts=[
            (name, value) for name, value in figures.facts(summary) if name not in ("run", "valid")
        ],
        verdict=VERDICTS[summary.run.valid],
        links=plots.LINKS,
        plots={
            "latency": plots.latency_over_time(summary),
            "throughput": plots.throughput(summary),
            "types": plots.server_messages(summary),
            "classes": plots.message_classes(summary),
        },
    )
