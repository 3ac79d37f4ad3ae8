"""What runs a log on a store and looks after it, for programs and for nodes: host, upkeep, laws and checks."""
