"""How a node runs, as one value, which `leaderless.runtime.command_line` makes of its options."""

from typing import TYPE_CHECKING, NamedTuple

from leaderless.core.shape import Runs, Shape
from leaderless.core.strategies import DEFAULT
from leaderless.core.strategy import Options

if TYPE_CHECKING:  # a node without options needs neither
    from pathlib import Path

    from leaderless.store.options import StoreOptions

LIN_KV = "lin-kv:"  # the store that is no URL: the service of the bench


class StorePlace(NamedTuple):
    """A real store for a node: its URL, and how to reach it."""

    url: str
    options: "StoreOptions"


class Settings(NamedTuple):
    """How a node runs; see `--help` for the meaning of each field.

    `place`: None for `lin-kv`.
    """

    strategy: str = DEFAULT
    options: Options = Options()
    log_level: str = "warning"
    backend: str = "asyncio"
    trace: "Path | None" = None
    place: StorePlace | None = None
    runs: Runs | None = None

    def on_log(self, shape: Shape) -> "Settings":
        """For a log of this shape, whose registers may be smaller than those of `lin-kv`."""
        limits = self.options.limits.fitted(shape)
        return self._replace(options=self.options._replace(limits=limits, shape=shape))
