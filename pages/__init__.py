"""Runs as web pages: served from a store (`./maelstrom serve`), or one file (`analysis report`).

    folders   which folders of a store are runs or sweeps, and which files may be shown
    facts     what a run's small files say: options, verdict, counts
    figures   what takes reading its history and journal: latencies, messages, faults
    findings  its anomalies in sentences; lamport, timeline: pictures of them
    cache     keeps all of that, until the run's files change
    render    the templates; plots: inline SVG
    app       the server; report: the same pages as one file

Pages never need Spark: what is too large to be read for a page is computed by
`python -m analysis summary`, which leaves its figures in the run's folder.
"""
