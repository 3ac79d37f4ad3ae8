"""Where the stores of the contract are."""

from typing import NamedTuple

from leaderless.store.port import Store
from leaderless.store.urls import open_store
from tests import servers


class Place(NamedTuple):
    """Where a store is, and how to reach it."""

    url: str
    endpoint: str = ""

    def open(self) -> Store:
        return open_store(self.url, servers.options_of(self.url, self.endpoint))
