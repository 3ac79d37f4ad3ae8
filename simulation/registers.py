"""The store of a simulated cluster: the bench's own `lin-kv`, with every change of a register reported."""

from collections.abc import Callable, Mapping
from typing import Any

from bench.services import Body, canonical_key, respond_kv


class Store:
    """A `bench.services.Consistency`, linearizable; `changed` is called after each change."""

    def __init__(
        self,
        changed: Callable[[str, Any, Any], object] = lambda _register, _old, _new: None,
        cells: Mapping[Any, tuple[Any]] = {},
    ) -> None:
        self.cells = dict(cells)
        self._changed = changed

    @property
    def registers(self) -> dict[str, Any]:
        """What the registers hold, by name."""
        return {key: value for key, (value,) in self.cells.items()}

    def handle(self, _client: str, request: Body) -> Body:
        """The reply to a request, on the newest state."""
        reply, changes = respond_kv(self.cells.get, request)
        if changes:
            old = self.cells.get(canonical_key(request.get("key")))
            self.cells.update(changes)
            for key, (value,) in changes.items():
                self._changed(str(key), old and old[0], value)
        return reply
