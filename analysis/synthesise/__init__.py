"""Histories of any size, valid or with anomalies planted in them, made by Spark.

They are deterministic: the same layout and seed give the same history, on any number of machines. See
`planting` for the anomalies, `synthesis` for the times of operations and the tables.
"""

from analysis.synthesise.planting import ANOMALIES
from analysis.synthesise.synthesis import Layout, Synthetic, synthesise, write

__all__ = ["ANOMALIES", "Layout", "Synthetic", "synthesise", "write"]
