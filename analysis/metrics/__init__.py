"""Metrics: functions from tables of the lake to small tables, one row per run and group.

Each docstring is the definition. Tables of several runs may be given: `run_id` is always a key.
"""
