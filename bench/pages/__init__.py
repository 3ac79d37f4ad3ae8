"""Runs as web pages: served from a store (`./maelstrom serve`), or one file (`analysis report`).

    facts     a store as pages see it: what the small files, figures and findings of each run say
    lamport   a picture of the first anomaly
    listing   what pages show: one run, the list, two side by side, a sweep
    pictures  plots as inline SVG, and the page of a log that is followed while it grows
    render    the templates
    app       the server; report: the same pages as one file
    tab       a page that simulates nodes: the files of a folder
    explorer  searches, stories and counterexamples of models as one page

Pages judge and measure nothing. A run that is too large to be read for a page is measured by
`python -m analysis report`, which leaves its figures in the run's folder.
"""
