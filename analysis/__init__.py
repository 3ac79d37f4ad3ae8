"""What runs of a Maelstrom-compatible bench left behind, as tables, figures and pages (PySpark).

    runs and stores  --ingest-->  lake of Parquet tables  --notebooks, summary, check-->  answers

- `schemas`    the tables, with explicit types and units
- `rows`       a run as rows of the tables, measured by `runs.figures`; without Spark
- `lake`       runs into the lake: idempotent, never silent about a malformed line; copies of it
- `comparison` what programs have in common: is a difference more than noise?
- `checker`    the kafka checker for histories of any size
- `synthesise` histories of any size, with anomalies planted in them
- `notebooks`  the questions that the tables answer

This package reads files only: it imports neither the node nor the simulator.
"""
