"""Pictures of metrics, each one function from tables of the lake to a `Picture`.

They compute what they show with `analysis.metrics`, whose docstrings are the definitions, and draw in the
bench's colours.
"""

from analysis.plots.compare import compare
from analysis.plots.groups import latency_quantiles, messages_per_operation
from analysis.plots.recovery import recovery_times
from analysis.plots.style import Picture
from analysis.plots.time import availability_over_time, lag_over_time, latency_over_time

__all__ = [
    "Picture",
    "availability_over_time",
    "compare",
    "lag_over_time",
    "latency_over_time",
    "latency_quantiles",
    "messages_per_operation",
    "recovery_times",
]
