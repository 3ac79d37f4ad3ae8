"""Runs as web pages: served from a store (`./maelstrom serve`), or one file (`analysis report`).

    facts     what a run's small files say, as rows of the list and the head of a page
    shelf     a store as pages see it: facts, figures (`runs.figures`), findings (`bench.judgement`) of each run
    lamport   a picture of the first anomaly
    live      a log that is followed while it grows
    listing   the list of runs; run_page, compare, sweep: the other pages
    render    the templates; pictures: plots as inline SVG
    app       the server; report: the same pages as one file

Pages judge and measure nothing. A run that is too large to be read for a page is measured by
`python -m analysis report`, which leaves its figures in the run's folder.
"""
