"""What a command of `leaderless` is, and what it opens (`leaderless.api.commands` has them)."""

from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from leaderless.arguments import Argument

if TYPE_CHECKING:
    from leaderless.api.log import Log
    from leaderless.store.port import Store

T = TypeVar("T")
Result = dict[str, object]
Opens = Callable[[Namespace], AbstractAsyncContextManager[T]]
Work = Callable[[T, Namespace], Awaitable[Result | None]]


class Command(NamedTuple):
    """A command: one line of help, its arguments, an example of them, what it opens, what it does with that."""

    summary: str
    arguments: tuple[Argument, ...]
    example: str
    opens: Opens[Any]
    work: Work[Any]

    async def run(self, options: Namespace) -> Result | None:
        """Run it; returns what is to be shown, or None where it has shown all."""
        async with self.opens(options) as opened:
            return await self.work(opened, options)


COMMANDS: dict[str, Command] = {}


def command(
    opens: Opens[T], summary: str, *arguments: Argument, example: str = ""
) -> Callable[[Work[T]], Work[T]]:
    """Decorate a function `_a_name`, which works on what `opens` gives, as the command `a-name`."""

    def declared(work: Work[T]) -> Work[T]:
        name = getattr(work, "__name__", "").strip("_").replace("_", "-")
        COMMANDS[name] = Command(summary, arguments, example, opens, work)
        return work

    return declared


def log_at(options: Namespace) -> "AbstractAsyncContextManager[Log]":
    """The log that the options name."""
    from leaderless.api.opening import open_log

    return open_log(
        options.store,
        options.topic,
        create=False,
        endpoint=options.endpoint,
        region=options.region,
        patience_s=options.patience,
        store_timeout_s=min(5.0, options.patience),
        peers=options.peers,
    )


def store_at(options: Namespace) -> "AbstractAsyncContextManager[Store]":
    """Its store."""
    return aclosing(place_at(options))


def place_at(options: Namespace) -> "Store":
    """The store, for `bench --cloud` as far away as that."""
    from leaderless.hosting.place import place_of
    from leaderless.store.clouds import CLOUDS, like
    from leaderless.store.options import StoreOptions

    timeout_s = min(10.0, options.patience)
    known = StoreOptions(endpoint=options.endpoint, region=options.region, timeout_s=timeout_s)
    place = place_of(options.store, options.topic, known)
    cloud: str | None = getattr(options, "cloud", None)
    return like(place, CLOUDS[cloud], shared=options.processes > 0) if cloud else place
