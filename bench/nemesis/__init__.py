"""Faults: what each one does (docs/faults.md). Their names are in `runs.faults.names`."""
