"""From the files of runs to the tables of the lake."""

from analysis.ingest.batched import Ingested, ingest, ingest_run

__all__ = ["Ingested", "ingest", "ingest_run"]
