"""A Kafka-style log without a leader: a node, and a library that keeps the log on a store.

    from leaderless import open_log

See `leaderless.library.log`. The names of the library are imported when they are first used, so that a node
starts without them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leaderless.library.log import Log as Log
    from leaderless.library.opening import open_log as open_log
    from leaderless.library.record import Record as Record
    from leaderless.library.sync import LogSync as LogSync
    from leaderless.library.sync import open_log_sync as open_log_sync

__version__ = "0.1.0"

_PLACES = {
    "Log": "log",
    "LogSync": "sync",
    "Record": "record",
    "open_log": "opening",
    "open_log_sync": "sync",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leaderless.library.{_PLACES[name]}"), name)
