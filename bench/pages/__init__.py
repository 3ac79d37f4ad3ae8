"""Runs as web pages: served from a store (`./maelstrom serve`), or one file (`analysis report`).

    facts     a store as pages see it: what the small files, figures and findings of each run say
    lamport   a picture of the first anomaly
    listing   pages of several runs: the list, two side by side, a sweep; run_page: one run
    pictures  plots as inline SVG, and the page of a log that is followed while it grows
    render    the templates
    app       the server; report: the same pages as one file
    explorer  searches and stories as one page; model_books: counterexamples of models for it

Pages judge and measure nothing. A run that is too large to be read for a page is measured by
`python -m analysis report`, which leaves its figures in the run's folder.
"""
