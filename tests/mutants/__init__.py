"""Mutants: the core with one rule broken each, and what gives it away (`python -m tests.mutants`)."""
