"""How anything is drawn: one table of colours, one style, every plot and diagram, for every surface.

`style` has the colours, `picture` what all plots are made of. `run` and `groups` are the plots: fed by rows of
figures, written as PNG or as SVG inside a page. `timeline` and
`lamport` are diagrams of operations and of messages. `run.draw_all` draws the folder of a run.
"""
