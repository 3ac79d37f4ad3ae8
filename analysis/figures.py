"""Figures as people read them, the same on the terminal and on the page."""

from analysis.summary import Summary

NONE = "–"


def count(value: int) -> str:
    return f"{value:,}".replace(",", " ")


def milliseconds(value_ns: int | None) -> str:
    """In ms, with three significant digits or so: 0.65, 8.42, 58.3, 1 750."""
    if value_ns is None:
        return NONE
    value_ms = value_ns / 1e6
    decimals = 2 if value_ms < 10 else 1 if value_ms < 100 else 0
    return f"{value_ms:,.{decimals}f}".replace(",", " ")


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def facts(summary: Summary) -> list[tuple[str, str]]:
    """What was run, as names and values; what is unknown is left out."""
    run = summary.run
    candidates = [
        ("run", run.run_id),
        ("workload", run.workload),
        ("engine", run.engine),
        ("nodes", summary.node_count or None),
        ("concurrency", run.concurrency),
        ("rate", f"{run.rate_hz:g}/s" if run.rate_hz is not None else None),
        ("time limit", f"{run.time_limit_s:g} s" if run.time_limit_s is not None else None),
        ("latency", f"{run.latency_ms:g} ms" if run.latency_ms is not None else None),
        ("lasted", f"{summary.duration_ns / 1e9:.1f} s"),
        ("operations", count(summary.operation_count)),
        ("faults", len(summary.faults) or None),
        ("started", run.started),
        ("valid", run.valid),
    ]
    return [(name, str(value)) for name, value in candidates if value is not None]
