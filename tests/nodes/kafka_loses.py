#!/usr/bin/env python3
"""Acknowledges every message, and forgets every third of a key when the next comes: `lost-write`."""

from kafka_node import KafkaNode


class Loses(KafkaNode):
    def read(self, key, offset):
        log = super().read(key, offset)
        return [pair for pair in log if pair[0] % 3 != 1 or pair == log[-1]]


Loses().run()
