"""The pure core: events and time in, effects out. No await, no clock, no randomness, no I/O."""
