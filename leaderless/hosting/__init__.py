"""What runs a log on a store: its place and shape, the host of its core, large values, batches with names."""
