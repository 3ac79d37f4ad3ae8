#!/usr/bin/env python3
"""Each key lives on one node only, and can be polled there only.

Sends are forwarded to the key's owner; everyone else answers a poll as if the key were empty. What
a client sees through one node is consistent, and every message is seen through its owner, so the
real checker finds nothing wrong. Only `--strict` does: a message cannot be polled everywhere.
"""

from zlib import crc32

from kafka_node import KafkaNode


class NeverReplicates(KafkaNode):
    def handle_send(self, request):
        owner = self.ids[crc32(request["body"]["key"].encode()) % len(self.ids)]
        if owner == self.id:
            super().handle_send(request)
        else:
            self.forward(request, owner)


NeverReplicates().run()
