"""Notebooks, and the call that each begins with: `tables = analysis.notebooks.open_lake()`.

A notebook holds no logic: figures come from `analysis.metrics`, pictures from `plots`,
sentences from `analysis.notebooks.answers`. Which lake it reads is its only parameter.
"""

from analysis.notebooks.lake import LAKE, MASTER, Tables, open_lake

__all__ = ["LAKE", "MASTER", "Tables", "open_lake"]
