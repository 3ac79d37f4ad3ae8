"""Requests of nodes to a real store: how many, of which kinds, how they ended."""

import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

_GATEWAY = re.compile(r"/v3/(.+)")  # of etcd


class RequestStatistics:
    """Counts requests. Those before `begin` are of the start: nodes look whether the store keeps its laws."""

    def __init__(self) -> None:
        self.at_start = 0
        self._clear()

    def _clear(self) -> None:
        self.by_kind: Counter[str] = Counter()
        self.by_status: Counter[str] = Counter()
        self.by_fault: Counter[str] = Counter()
        self.sent_bytes = self.received_bytes = 0

    def begin(self) -> None:
        """The main phase begins."""
        self.at_start = self.count
        self._clear()

    @property
    def count(self) -> int:
        """Requests since `begin`."""
        return self.by_kind.total()

    def asked(self, method: str, target: str, size: int, fault: str | None) -> None:
        """A node has sent a request, which meets a fault or none."""
        self.by_kind[kind_of(method, target)] += 1
        self.sent_bytes += size
        if fault:
            self.by_fault[fault] += 1

    def answered(self, status: int, size: int) -> None:
        """The store has answered."""
        self.by_status[str(status)] += 1
        self.received_bytes += size


def kind_of(method: str, target: str) -> str:
    """The kind of a request: of S3 its method, or LIST; of etcd the method of its gateway, such as `kv/txn`."""
    parts = urlsplit(target)
    if found := _GATEWAY.fullmatch(parts.path):
        return found[1]
    is_list = method == "GET" and "list-type" in parse_qs(parts.query)
    return "LIST" if is_list else method
