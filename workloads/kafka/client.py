"""The kafka client: turns one operation into RPCs, and keeps the position of each assigned key.

`assign` keeps the position of keys it already had, otherwise takes the committed offset, otherwise
0. `poll` sends its positions, moves each behind the highest offset returned, and when it got
anything commits the highest polled offset of each key. A definite error to the commit makes the
whole poll fail after the positions have moved on, as in the original. [facts: Maelstrom's
workload/kafka.clj]
"""

from typing import Any

from runs.history import Op
from workloads.interface import Body, CrashClient, Rpc, Steps
from workloads.kafka import replies


class KafkaClient:
    """A client of one node."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._positions: dict[str, int] = {}  # assigned key -> offset to poll from

    def invoke(self, op: Op) -> Steps:
        match op.f:
            case "send":
                return self._send(op.value[0])
            case "poll":
                return self._poll()
            case "assign":
                return self._assign(op)
            case "crash":
                return _crash()
        raise ValueError(f"the kafka client knows no operation {op.f!r}")

    def _send(self, micro_op: list[Any]) -> Steps:
        name, key, message = micro_op
        request = {"type": "send", "key": key, "msg": message}
        reply = yield self._rpc(request)
        return [[name, key, [replies.send_ok(request, reply), message]]]

    def _poll(self) -> Steps:
        request: Body = {"type": "poll", "offsets": self._positions}
        reply = yield self._rpc(request)
        messages = replies.poll_ok(request, reply)
        # What a request holds must not change while it is on its way: positions are replaced.
        polled: dict[str, int] = {}
        positions = dict(self._positions)
        for key, pairs in messages.items():
            highest = max((pair[0] for pair in pairs), default=-1)
            positions[key] = max(positions.get(key, highest + 1), highest + 1)
            if pairs:
                polled[key] = max(highest, 0)
        self._positions = positions
        if polled:
            request = {"type": "commit_offsets", "offsets": polled}
            replies.commit_offsets_ok(request, (yield self._rpc(request)))
        return [[replies.POLL, messages]]

    def _assign(self, op: Op) -> Steps:
        keys: list[str] = op.value
        if op.extra.get("seek-to-beginning?"):
            self._positions = dict.fromkeys(keys, 0)
            return op.value
        request: Body = {"type": "list_committed_offsets", "keys": keys}
        reply = yield self._rpc(request)
        committed = replies.list_committed_offsets_ok(request, reply)
        known = self._positions
        self._positions = {key: known.get(key, committed.get(key, 0)) for key in keys}
        return op.value

    def _rpc(self, body: Body) -> Rpc:
        return Rpc(self._node, body)


def _crash() -> Steps:
    raise CrashClient
    yield  # makes this a generator, like the others
