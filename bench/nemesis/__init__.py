"""Faults. `names` says what they and their operations are called; docs/faults.md what each one does."""

from bench.nemesis.names import DEEDS, FAULTS, OPERATIONS

__all__ = ["DEEDS", "FAULTS", "OPERATIONS"]
