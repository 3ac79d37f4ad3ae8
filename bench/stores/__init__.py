"""Real stores under the bench: servers that a run starts, and a proxy between nodes and store.

A node reaches a real store by sockets of its own, and not by the network of the bench. So the bench puts a
proxy between the two, with a port for each node: there latency, link faults and faults of the store act, and
requests are counted.
"""
