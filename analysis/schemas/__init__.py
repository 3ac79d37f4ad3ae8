"""Explicit schemas: `lines` of the files read, `tables` of the lake written."""
