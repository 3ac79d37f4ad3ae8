#!/usr/bin/env python3
"""Begins one message too late in every other answer, once a reader has started: `poll-skip`.

Whoever starts from the beginning gets everything, so no message is lost: only its turn is missed.
"""

from itertools import cycle

from kafka_node import KafkaNode


class Skips(KafkaNode):
    def __init__(self):
        super().__init__()
        self.late = cycle([False, True])

    def read(self, key, offset):
        pairs = super().read(key, offset)
        if offset > 0 and len(pairs) > 1 and next(self.late):
            return pairs[1:]
        return pairs


Skips().run()
