"""Sweeps: a matrix of tests, run one after the other, that survives being interrupted.

    definition  a TOML file -> the cells, checked; axes: what may be swept
    work        the runs that are left, their order and duration
    runner      one run as a process of its own
    index       index.jsonl, one line a finished run
    figures     messages an operation, latencies, throughput of a finished run
    table       the table at the end

Each run is an ordinary one of `./maelstrom test`; a sweep adds nothing to it but its place.
"""
