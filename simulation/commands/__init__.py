"""The sub-commands of `./maelstrom` that run the simulator, one a module: `bench.commands.main` names them."""
