#!/usr/bin/env python3
"""Appends every third message of a key twice, as after a careless retry: `duplicate`."""

from kafka_node import KafkaNode


class Duplicates(KafkaNode):
    def append(self, key, message):
        offset = super().append(key, message)
        if offset % 3 == 0:
            super().append(key, message)
        return offset


Duplicates().run()
