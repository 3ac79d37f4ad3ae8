"""The whole bench and its nodes in one process on a virtual clock, everything drawn from one seed.

The same network, services, generator, workers, faults, recorder and checker as on real processes, with the
same node behind them (`leaderless.runtime.session`): only the clock, the pipes and the processes are not
real. `./maelstrom simulate --help`; docs/evidence/simulation.md tells what is drawn and what is judged.
"""
