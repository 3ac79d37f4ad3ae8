"""One module per sub-command of `./maelstrom`."""
