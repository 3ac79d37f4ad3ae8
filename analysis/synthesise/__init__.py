"""Histories of any size, valid or with anomalies planted in them, made by Spark.

They are deterministic: the same layout and seed give the same history, on any number of machines.
"""

from analysis.synthesise.layout import Layout
from analysis.synthesise.planting import ANOMALIES
from analysis.synthesise.synthesis import Synthetic, synthesise, write

__all__ = ["ANOMALIES", "Layout", "Synthetic", "synthesise", "write"]
