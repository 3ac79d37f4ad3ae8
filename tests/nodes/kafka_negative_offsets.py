#!/usr/bin/env python3
"""Acknowledges messages at offsets -1, -2, -3, while polls show 0, 1, 2."""

from kafka_node import KafkaNode


class Negative(KafkaNode):
    def append(self, key, message):
        return -1 - super().append(key, message)


Negative().run()
