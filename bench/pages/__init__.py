"""Runs as web pages: served from a store (`./maelstrom serve`), or one file (`analysis report`).

    facts     what a run's small files say, as rows of the list and the head of a page
    findings  its anomalies in sentences; lamport: a picture of the first
    library   a store as pages see it: facts, figures (`runs.figures`) and findings of each run
    cache     holds what was computed, until the run's files change
    live      a log that is followed while it grows
    listing   the list of runs; run_page, compare, sweep: the other pages
    render    the templates; pictures: plots as inline SVG
    app       the server; report: the same pages as one file

Pages never need Spark. A run that is too large to be read for a page is read by
`python -m analysis summary`, which leaves its figures in the run's folder.
"""
