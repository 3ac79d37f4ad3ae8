#!/usr/bin/env python3
"""Asks the first node for everything, which keeps it in memory: cheap and right, until that node is killed."""

from kafka_node import KafkaNode


class Owned(KafkaNode):
    def receive(self, message):
        is_request = "in_reply_to" not in message["body"] and message["body"]["type"] != "init"
        if is_request and self.id != self.ids[0]:
            self.forward(message, self.ids[0])
        else:
            super().receive(message)


Owned().run()
