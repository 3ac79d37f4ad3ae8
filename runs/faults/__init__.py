"""Faults as a run records them."""
