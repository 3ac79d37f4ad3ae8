"""How a node runs, as one value."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from leaderless.core.shape import Runs, Shape
from leaderless.core.strategies import DEFAULT
from leaderless.core.strategy import Options

if TYPE_CHECKING:  # a node without options needs neither
    from pathlib import Path

    from leaderless.runtime.store_url import StorePlace

LIN_KV = "lin-kv:"  # the store that is no URL: the service of the bench


class Settings(NamedTuple):
    """How a node runs; see `--help` for the meaning of each field."""

    strategy: str = DEFAULT
    options: Options = Options()
    log_level: str = "warning"
    backend: str = "asyncio"
    trace: "Path | None" = None
    place: "StorePlace | None" = None
    runs: Runs | None = None

    def on_log(self, shape: Shape) -> "Settings":
        """For a log of this shape, whose registers may be smaller than those of `lin-kv`."""
        limits = self.options.limits.fitted(shape)
        return self._replace(options=self.options._replace(limits=limits, shape=shape))


def parse(arguments: Sequence[str], program: str = "run.sh") -> Settings:
    """Settings from the command line; `--help` and errors end the process as usual (0 and 2).

    Without options, as a bench starts a node, no parser is made: that would be a tenth of the start.
    """
    if not arguments:
        return Settings()
    from leaderless.runtime.command_line import parse_options

    return parse_options(arguments, program)
