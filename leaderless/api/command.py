"""What a command of `leaderless` is, what it opens, and how it shows a record.

`leaderless.api.commands` works on a log, `group_commands` on groups of consumers, `tables` on files.
"""

from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from leaderless.arguments import Argument, argument

if TYPE_CHECKING:
    from leaderless.api.log import Log
    from leaderless.hosting.reads import Record
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


KEY = argument("key", help="the key; any text of 1024 bytes at most")
COMMANDS: dict[str, Command] = {}  # by name, once their modules are imported


def command(
    opens: Opens[T], summary: str, *arguments: Argument, example: str = ""
) -> Callable[[Work[T]], Work[T]]:
    """Decorate a function `_a_name`, which works on what `opens` gives, as the command `a-name`."""

    def declared(work: Work[T]) -> Work[T]:
        name = getattr(work, "__name__", "").strip("_").replace("_", "-")
        COMMANDS[name] = Command(summary, arguments, example, opens, work)
        return work

    return declared


def log_of(options: Namespace) -> "AbstractAsyncContextManager[Log]":
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


def store_of(options: Namespace) -> "AbstractAsyncContextManager[Store]":
    """The store that they name."""
    return aclosing(place_named(options))


def place_named(options: Namespace) -> "Store":
    """The store, for `bench --cloud` as far away as that."""
    from leaderless.hosting.place import place_of
    from leaderless.store.clouds import CLOUDS, like
    from leaderless.store.options import StoreOptions

    timeout_s = min(10.0, options.patience)
    known = StoreOptions(endpoint=options.endpoint, region=options.region, timeout_s=timeout_s)
    place = place_of(options.store, options.topic, known)
    cloud: str | None = getattr(options, "cloud", None)
    return like(place, CLOUDS[cloud], shared=options.processes > 0) if cloud else place


def row_of(record: "Record") -> Result:
    """A record as JSON."""
    from leaderless.store.values import message_of

    beside = {"time_ms": record.time_ms, "headers": record.headers}
    told = {name: value for name, value in beside.items() if value}
    return {"offset": record.offset, "value": message_of(record.value), **told}
