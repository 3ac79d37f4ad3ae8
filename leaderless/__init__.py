"""The node: the only part that ships in a node."""
