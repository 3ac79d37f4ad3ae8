"""Sweeps: a matrix of tests, run one after the other, that survives being interrupted.

    axes        what a sweep may vary
    definition  a TOML file -> the cells, checked
    work        the runs of a sweep, their order and duration
    runner      one run as a process of its own
    progress    makes the runs and shows progress
    folder      the index of finished runs, the lock, the machine
    table       the table at the end
    junit       the same as JUnit XML

Each run is an ordinary one of `./maelstrom test`; a sweep adds nothing to it but its place.
"""
