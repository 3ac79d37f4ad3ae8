"""HeadLog (specs/HeadLog) in Python: `simulation.refinement` follows the real code with it.

It is held to TLC: in states of small configurations it takes just the steps that TLC takes (`make proofs`).
"""
