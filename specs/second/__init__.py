"""A second, independent check of small models: the same protocols in plain Python.

There are three: HeadLog, which also judges the real code (`simulation.refinement`), and the two published
protocols that it came from, LeaderlessLog and TaskClaiming.

TLC and this package share nothing but the manifest. Each protocol is written again from prose, states as
values, and every configuration must come out with the same verdict and, where it passes, with the same number
of distinct states. Liveness is not checked here.
"""
