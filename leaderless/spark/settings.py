"""The options of the data source: which log, and how to reach it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from leaderless.errors import Unfit
from leaderless.hosting.place import place_of
from leaderless.spark.predicate import ALL, Predicate, Range
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store

if TYPE_CHECKING:
    from leaderless.api.log import Log

STORE = "LEADERLESS_STORE"  # of the environment, as for the command line
PLACE = ("url", "path", "topic", "endpoint", "region", "accessKey", "secretKey")
READ = (*PLACE, "keys", "startOffset", "endOffset")
TABLE = (*READ, "asOfVersion", "sinceVersion", "large")
STREAM = (*READ, "start", "maxRecordsPerBatch", "failOnDataLoss")
SINK = (*PLACE, "values", "name")
STREAM_SINK = (*PLACE, "values", "checkpointLocation", "queryName")  # the last two are Spark's
MEANT = {  # by options of other sources
    "startingoffsets": "start",
    "maxoffsetspertrigger": "maxRecordsPerBatch",
    "maxfilespertrigger": "maxRecordsPerBatch",
    "maxbytespertrigger": "maxRecordsPerBatch",
    "versionasof": "asOfVersion",
    "startingversion": "sinceVersion",
}
PATIENCE_S = (
    60.0  # of one request to the log; a task or an epoch is tried again by Spark, at a higher price
)


class Place(NamedTuple):
    """A log, as tasks get it. Its `repr` has no credentials.

    Credentials that are no options come from the environment of the process that uses them.
    """

    url: str
    topic: str | None
    access: StoreOptions

    def log(self) -> AbstractAsyncContextManager["Log"]:
        """The log, which must exist, open within the block."""
        from leaderless.api.opening import open_log  # Python in tasks starts faster without it

        endpoint, key, secret = self.access.endpoint, self.access.access_key, self.access.secret_key
        return open_log(
            self.url,
            self.topic,
            create=False,
            endpoint=endpoint,
            access_key=key,
            secret_key=secret,
            region=self.access.region,
            patience_s=PATIENCE_S,
        )

    def store(self) -> Store:
        """The store of the log's objects; the caller closes it."""
        return place_of(self.url, self.topic, self.access)


def require_known(options: Iterable[str], known: Sequence[str]) -> None:
    """Raises `Unfit` for an option that is none of `known`, in whatever case it is written."""
    names = {name.lower(): name for name in known}
    for unknown in sorted(name for name in options if name.lower() not in names):
        wanted = MEANT.get(unknown.lower(), unknown).lower()
        meant = [names[name] for name in get_close_matches(wanted, names, 1)]
        text = f"{meant[0]!r} is meant, or" if meant else "it is"
        raise Unfit(f"{unknown!r} is no option here: {text} one of {', '.join(names.values())}")


def place_in(options: Mapping[str, str]) -> Place:
    """The log that the options of a source or sink name. Raises `Unfit`."""
    url = options.get("url") or options.get("path") or os.environ.get(STORE)
    if not url:
        text = "A table of CREATE TABLE has no options: use CREATE TEMPORARY VIEW"
        raise Unfit(
            f"which log? Set the option url, such as s3://bucket/orders, or {STORE}. {text}"
        )
    access = StoreOptions(
        options.get("endpoint"),
        options.get("accessKey"),
        options.get("secretKey"),
        options.get("region"),
    )
    return Place(url, options.get("topic"), access)


def predicate_in(options: Mapping[str, str]) -> Predicate:
    """Which records the options of a table or stream ask for. Raises `Unfit`."""
    keys, large = options.get("keys"), flag_in(options, "large", default=False)
    first, end = count_in(options, "startOffset"), count_in(options, "endOffset")
    offsets = Range(first or 0, ALL.last if end is None else end - 1)
    return Predicate(None if keys is None else frozenset(keys.split(",")), offsets, large=large)


def count_in(options: Mapping[str, str], name: str) -> int | None:
    """The option `name` as a number from 0 up; None when it is not set. Raises `Unfit`."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise Unfit(f"the option {name} is a number from 0 up, not {text!r}")
    return int(text)


def flag_in(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """The option `name`, which is true or false. Raises `Unfit`."""
    text = options.get(name)
    if text not in (None, "true", "false"):
        raise Unfit(f"the option {name} is true or false, not {text!r}")
    return default if text is None else text == "true"
