"""A Kafka-style log without a leader: a node, and a library that keeps the log on a store.

    from leaderless import open_log

    async with open_log("sqlite:///orders.db") as log:
        offset = await log.append("eu", {"item": 7})

    open_log       opens a log on a store, in a program with an event loop
    open_log_sync  opens a log on a store, in a program without one
    Log            what `open_log` gives: append, read, tail, consumer and more
    LogSync        what `open_log_sync` gives: the same methods, which block
    Consumer       what `Log.consumer` gives: a member of a group of consumers
    ConsumerSync   what `LogSync.consumer` gives: the same methods, which block
    Record         a value of the log, with its key and offset
    Status         what `Log.status` tells

    leaderless.errors           what is raised; each error says whether what was asked may have happened
    leaderless.spark            the log as a data source and sink of Spark; needs the extra `spark`
    leaderless.store.urls       which store a URL names
    leaderless.table.retention  which old files leave a log; needs the extra `table`
    leaderless.table.snapshot   the log as a list of Parquet files; needs the extra `table`

`leaderless --help` lists the commands. Names are imported when they are first used, so that a node starts
without the library.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaderless.api.log import Log
    from leaderless.api.opening import open_log
    from leaderless.api.sync import ConsumerSync, LogSync, open_log_sync
    from leaderless.api.tail import Status
    from leaderless.groups.consumer import Consumer
    from leaderless.hosting.reads import Record

__all__ = [
    "Consumer",
    "ConsumerSync",
    "Log",
    "LogSync",
    "Record",
    "Status",
    "open_log",
    "open_log_sync",
]
__version__ = "0.1.0"

_PLACES = {
    "Consumer": "groups.consumer",
    "ConsumerSync": "api.sync",
    "Log": "api.log",
    "LogSync": "api.sync",
    "Record": "hosting.reads",
    "Status": "api.tail",
    "open_log": "api.opening",
    "open_log_sync": "api.sync",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leaderless.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """With the names that are not imported yet, for `help` and for completion."""
    return sorted({*globals(), *__all__})
