"""The protocols as TLA+ models, and the tools that check them with TLC.

`python -m specs.check` runs every model of `manifest.json` and compares what TLC says with what
is expected; `python -m specs.proof` proves some of them for every size.
"""
