"""Makes a failing run on a virtual bucket small, as `simulation.shrink` makes one of a cluster."""

from simulation.objects.judge import Report, simulate
from simulation.objects.scenario import simpler
from simulation.shrink import Effort, Log, Way, smallest_by

EFFORT = Effort(seeds_per_step=40, seeds_at_the_end=200)


def smallest(report: Report, log: Log = lambda _: None, effort: Effort = EFFORT) -> Report:
    """The report of a small scenario that fails in the same way. Raises `ValueError` when nothing is wrong."""
    return smallest_by(Way(simulate, simpler, _line), report, log, effort)


def _line(report: Report) -> str:
    chosen = report.scenario
    left = len(chosen.acts())
    return (
        f"{report.operations} operations: seed {chosen.seed}, {left} acts, {chosen.processes} processes, "
        f"{chosen.workers} workers each, faults {','.join(chosen.faults) or 'none'}"
    )
