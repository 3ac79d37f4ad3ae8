"""The parts of the model checker's driver: manifest, running TLC, reading its output, showing it."""
