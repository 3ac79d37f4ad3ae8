"""The checkers of every run, composed with the workload's own into the map of results.edn."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.checkers.basics import availability, exceptions, stats
from bench.checkers.net import net_statistics
from bench.net import Network
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import Checker

UNKNOWN = Keyword("unknown")
Result = dict[Keyword, Any]


def worst(verdicts: Sequence[Any]) -> Any:
    """Invalid when any verdict is, else unknown when any is, else valid."""
    if any(verdict is False for verdict in verdicts):
        return False
    return UNKNOWN if any(verdict == "unknown" for verdict in verdicts) else True


def check_all(
    history: Sequence[Op], options: Mapping[str, Any], network: Network, workload: Checker
) -> Result:
    """The results of a run, in the real tool's form and order.

    `perf` and `timeline` judge nothing, there as here; the plots are drawn after the verdict.
    """
    valid = keywords(valid=True)
    graphs = keywords(latency_graph=dict(valid), rate_graph=dict(valid), valid=True)
    results = keywords(
        perf=graphs,
        timeline=dict(valid),
        exceptions=_safely(lambda: exceptions(history)),
        stats=_safely(lambda: stats(history)),
        availability=_safely(lambda: availability(history, options.get("availability"))),
        net=_safely(lambda: net_statistics(history, network)),
        workload=_safely(lambda: workload(history, options)),
    )
    results[Keyword("valid?")] = worst([result["valid?"] for result in results.values()])
    return results


def _safely(check: Callable[[], Result]) -> Result:
    """A checker that breaks leaves the verdict unknown and says so; the others still count."""
    try:
        return check()
    except Exception:
        return keywords(valid=UNKNOWN, error=traceback.format_exc())
