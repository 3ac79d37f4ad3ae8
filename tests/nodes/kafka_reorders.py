#!/usr/bin/env python3
"""Hands out what it has the newest first: `int-nonmonotonic-poll`."""

from kafka_node import KafkaNode


class Reorders(KafkaNode):
    def read(self, key, offset):
        return super().read(key, offset)[::-1]


Reorders().run()
