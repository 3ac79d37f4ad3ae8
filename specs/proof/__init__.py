"""Models proved for every size: any number of nodes, batches, epochs, segments and claims.

TLC visits all states of small configurations. Here each law follows by induction, and solvers check that
it does (docs/evidence/models/proof.md). A model is written once, as terms, that solvers read and Python
computes.
"""
