"""Pictures of metrics, for notebooks and documents: functions from small pandas frames to a matplotlib figure.

Frames are metrics of `analysis.metrics` with the columns `strategy` and `weather` of their runs (see
`analysis.notebooks.Tables.named`). Pages draw their own, in the page's colours (`analysis.pages.plots`).
"""

from analysis.plots.causes import messages_by_cause
from analysis.plots.comparison import differences
from analysis.plots.latency import latency_curves
from analysis.plots.offsets import filling
from analysis.plots.weather import recovery, under_faults

__all__ = [
    "differences",
    "filling",
    "latency_curves",
    "messages_by_cause",
    "recovery",
    "under_faults",
]
