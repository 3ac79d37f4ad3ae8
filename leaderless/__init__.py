"""A Kafka-style log without a leader: the node, and the library that it is made of."""

__version__ = "0.1.0"
