"""Pictures of metrics, each one function from tables of the lake to a `Picture` (`filling`, `latency_curves`
and `under_faults`: from the frames of `analysis.notebooks.tables`).

They compute what they show with `analysis.metrics`, whose docstrings are the definitions, and draw in the
bench's colours.
"""

from analysis.plots.compare import compare
from analysis.plots.curves import latency_curves
from analysis.plots.groups import latency_quantiles, messages_per_operation
from analysis.plots.offsets import filling
from analysis.plots.recovery import recovery_times
from analysis.plots.style import Picture
from analysis.plots.time import availability_over_time, lag_over_time, latency_over_time
from analysis.plots.weather import under_faults

__all__ = [
    "Picture",
    "availability_over_time",
    "compare",
    "filling",
    "lag_over_time",
    "latency_curves",
    "latency_over_time",
    "latency_quantiles",
    "messages_per_operation",
    "recovery_times",
    "under_faults",
]
