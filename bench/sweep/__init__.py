"""Sweeps: a matrix of tests, run one after the other, that survives being interrupted.

    axes    what a sweep may vary
    plan    a TOML file -> the cells, checked
    jobs    the runs, their order and duration
    making  each run is a process of its own; the index of finished runs, the lock, the progress
    table   the table at the end; the same as JUnit XML

Each run is an ordinary one of `./maelstrom test`; a sweep adds nothing to it but its place.
"""
