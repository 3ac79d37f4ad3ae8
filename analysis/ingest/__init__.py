"""From the files of a run to the tables of the lake."""

from analysis.ingest.run import Ingested, ingest_run

__all__ = ["Ingested", "ingest_run"]
