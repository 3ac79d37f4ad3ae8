"""A second, independent check of the small models: the same protocols in plain Python.

TLC and this package share nothing but the manifest. Each protocol is written again from prose, states as
values, and every configuration must come out with the same verdict and, where it passes, with the same number
of distinct states. Liveness is not checked here.
"""
