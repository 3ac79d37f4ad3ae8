"""What runs of a Maelstrom-compatible bench left behind, as tables, figures and pages (PySpark).

    runs and stores  --ingest-->  lake of Parquet tables  --metrics-->  small tables  --report-->  HTML

- `schemas`    the lines read and the tables written, with explicit types and units
- `ingest`     runs into the lake: idempotent, never silent about a malformed line
- `metrics`    functions DataFrame -> DataFrame, each with its definition
- `checker`    the kafka checker for histories of any size
- `synthesise` histories of any size, with anomalies planted in them
- `notebooks`  the questions that the figures answer

This package reads files only: it imports neither the node nor the simulator.
"""
