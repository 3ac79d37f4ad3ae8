"""One module per sub-command of `./maelstrom`; those that run the simulator are in `simulation.commands`."""
