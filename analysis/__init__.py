"""What runs of a Maelstrom-compatible bench left behind, as tables, figures and pages (PySpark).

    runs and stores  --ingest-->  lake of Parquet tables  --metrics-->  small tables  --report-->  HTML

- `formats`  readers of EDN and Fressian: pure, no Spark
- `schemas`  the lines read and the tables written, with explicit types and units
- `ingest`   one run into the lake: idempotent, never silent about a malformed line
- `metrics`  functions DataFrame -> DataFrame, each with its definition
- `report`   one self-contained page

This package reads files only: it imports neither the node nor the bench, and has its own readers,
so that a bug which wrote a history cannot hide by reading it the same wrong way.
"""
