"""Notebooks, and the call that each begins with: `tables = analysis.notebooks.open_lake()`.

A notebook holds no logic: pictures come from `runs.plots`, frames from `tables`, sentences from `answers`. The
rest is PySpark that a reader can take along. Which lake it reads is its only parameter.
"""

from analysis.notebooks.tables import LAKE, MASTER, Tables, open_lake

__all__ = ["LAKE", "MASTER", "Tables", "open_lake"]
