"""A deterministic world for node cores: machines, one store, a bad network, clients, and an oracle.

Everything follows from one seed (`scenario`): which faults, when, to whom. `world` runs it on a virtual clock
and hands out a history like the bench's; `oracle` watches the store and every answer, and names the invariant
that breaks. `python -m tests.sim SEED` replays one seed.
"""
