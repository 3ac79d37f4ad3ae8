#!/usr/bin/env python3
"""Keeps one log for all keys and forgets, when polled, whose message is whose.

A value then turns up at several offsets of a key: `duplicate`.
"""

from kafka_node import KafkaNode

ALL = "all keys"


class MixesKeys(KafkaNode):
    def append(self, _key, message):
        return super().append(ALL, message)

    def read(self, _key, offset):
        return super().read(ALL, offset)


MixesKeys().run()
