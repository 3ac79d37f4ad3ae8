"""The embedded, Maelstrom-compatible bench. The node is a black box to it."""
