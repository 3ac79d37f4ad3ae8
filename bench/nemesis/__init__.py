"""Faults: what each one does (docs/bench/faults.md). Their names are in `runs.faults`."""
