"""The commands of `leaderless` that work on a log: each reads its arguments and prints what came of it.

With `--json` a command prints one JSON object (`tail`: one a record), also for an error. Exit status: 0 done; 1
an error, or `fsck` found something, or `ack` met another offset; 2 wrong arguments; 130 interrupted.
"""

import argparse
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio

from leaderless.errors import Indefinite, LogError, Unfit
from leaderless.library import arguments, bench, fsck, groups
from leaderless.library.log import Log
from leaderless.library.opening import open_log
from leaderless.library.output import show
from leaderless.library.place import ensure_log, place_of, require_log, require_pyarrow
from leaderless.library.record import Record
from leaderless.library.tail import Start
from leaderless.store.calls import patiently, reached
from leaderless.store.counted import PRICES_AS_OF
from leaderless.store.names import FORMAT
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.probe import probe
from leaderless.store.urls import URLS
from leaderless.store.values import Value, json_of, message_of

DEFAULT_STORE = "sqlite:///leaderless.db"
INTERRUPTED = 130
Arguments = argparse.Namespace
Result = dict[str, object]


class Operation(NamedTuple):
    """A command: its arguments, and what it does with them."""

    add: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments], Awaitable[Result | None]]


def main(name: str, summary: str, given: Sequence[str]) -> int:
    """Run the command `name`; returns the exit status."""
    operation = OPERATIONS[name]
    parser = argparse.ArgumentParser(
        prog=f"leaderless {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"stores:\n{URLS}\n\nKeys of a store come from the environment: AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    operation.add(parser)
    _add_common(parser)
    options = parser.parse_args(given)
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(message)s"
    )
    return _run(operation, options)


def _run(operation: Operation, options: Arguments) -> int:
    try:
        result = anyio.run(operation.run, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LogError as error:
        kind = type(error).__name__
        unsure = isinstance(error, Indefinite)
        show({"error": str(error), "kind": kind, "may_have_happened": unsure}, options.json)
        return 1
    if result is not None:
        show(result, options.json)
    return 1 if result is not None and "error" in result else 0


def _add_common(parser: argparse.ArgumentParser) -> None:
    store = os.environ.get("LEADERLESS_STORE", DEFAULT_STORE)
    add = parser.add_argument
    add("--store", metavar="URL", default=store, help="where the log is, else LEADERLESS_STORE, else "
        f"{DEFAULT_STORE}")  # fmt: skip
    add("--topic", metavar="NAME", help="one of several logs in the store; any text")
    add(
        "--endpoint",
        metavar="URL",
        help="of an S3-compatible server, such as http://127.0.0.1:7480",
    )
    add("--region", help="of the bucket")
    add(
        "--patience",
        type=arguments.seconds,
        default=30.0,
        metavar="S",
        help="how long a call may take; default 30",
    )
    add("--json", action="store_true", help="print one JSON object")


@asynccontextmanager
async def _log(options: Arguments) -> AsyncIterator[Log]:
    opened = open_log(
        options.store,
        options.topic,
        create=False,
        endpoint=options.endpoint,
        region=options.region,
        patience_s=options.patience,
        store_timeout_s=min(5.0, options.patience),
    )
    async with opened as log:
        yield log


@asynccontextmanager
async def _store(options: Arguments) -> AsyncIterator[Store]:
    timeout_s = min(10.0, options.patience)
    known = StoreOptions(endpoint=options.endpoint, region=options.region, timeout_s=timeout_s)
    store = place_of(options.store, options.topic, known)
    try:
        yield store
    finally:
        await store.aclose()


# ---------------------------------------------------------------- commands


async def _init(options: Arguments) -> Result:
    async with _store(options) as store:
        try:
            probed = await patiently(partial(probe, store), options.patience)
        except Indefinite as silent:
            text = f"the store does not answer as it should: {silent}. Check its address and the network"
            raise type(silent)(text) from silent
        created, shape = await ensure_log(store, options.runs)
        etags = {"etags": probed.etags} if probed.etags else {}
        milliseconds = round(probed.request_s * 1000, 1)
        return {
            "store": store.url,
            "created": created,
            "runs": shape.runs,
            "request_ms": milliseconds,
        } | etags


async def _produce(options: Arguments) -> Result:
    value = options.value if options.string else _parsed(options.value, "the value")
    async with _log(options) as log:
        return {"key": options.key, "offset": await log.append(options.key, value)}


async def _produce_batch(options: Arguments) -> Result:
    lines = _lines_of(options.file)
    values = [_parsed(line, f"line {number}") for number, line in enumerate(lines, 1)]
    async with _log(options) as log:
        offsets = await log.append_many(options.key, values)
    return {"key": options.key, "first": offsets[0], "last": offsets[-1], "count": len(offsets)}


async def _read(options: Arguments) -> Result:
    async with _log(options) as log:
        records = await log.read(options.key, options.offset, options.limit)
    return {"key": options.key, "records": [_shown(record) for record in records]}


async def _tail(options: Arguments) -> None:
    start: Start = options.offset if options.offset is not None else "latest"
    left = options.count
    async with _log(options) as log:
        if left == 0:
            return
        async for record in log.tail(options.keys, start):
            show({"key": record.key, **_shown(record)}, options.json)
            left = left and left - 1
            if left == 0:
                return


async def _keys(options: Arguments) -> Result:
    async with _log(options) as log:
        ends = await log.keys()
    return {"keys": [{"key": key, "next_offset": end} for key, end in ends.items()]}


async def _consume(options: Arguments) -> Result:
    async with _log(options) as log:
        record = await groups.consume(log, options.group, options.key)
    found = {"empty": True} if record is None else _shown(record)
    return {"group": options.group, "key": options.key} | found


async def _ack(options: Arguments) -> Result:
    async with _log(options) as log:
        acked = await groups.ack(log.cursors, options.group, options.key, options.offset)
    result: Result = {"status": acked.status, "next": acked.next}
    if acked.status == "offset_mismatch":
        result["error"] = f"the group is at offset {acked.next}, not {options.offset}"
    return result


async def _groups(options: Arguments) -> Result:
    async with _log(options) as log:
        ends = await log.keys()
        found = await log.cursors.groups()
    return {
        "groups": [
            {
                "group": group,
                "key": key,
                "committed": cursor.committed,
                "lag": max(0, ends.get(key, 0) - cursor.next),
                "failures": cursor.failures,
            }
            for group, cursors in found.items()
            for key, cursor in cursors.items()
        ]
    }


async def _fence(options: Arguments) -> Result:
    async with _log(options) as log:
        return {"state": "fenced", "epoch": await log.fence()}


async def _unfence(options: Arguments) -> Result:
    async with _log(options) as log:
        return {"state": "open", "epoch": await log.unfence()}


async def _compact(options: Arguments) -> Result:
    async with _log(options) as log:
        return {"segments_compacted": await log.compact()}


async def _upgrade(options: Arguments) -> Result:
    async with _log(options) as log:
        return {"upgraded": await log.upgrade()}


async def _vacuum(options: Arguments) -> Result:
    async with _log(options) as log:
        return (await log.vacuum(options.retention))._asdict()


async def _retain(options: Arguments) -> Result:
    require_pyarrow("leaderless retain")
    from leaderless.table.retention import Policy

    policy = Policy(options.bytes, options.age, options.processed)
    async with _log(options) as log:
        return (await log.retain(policy))._asdict()


async def _files(options: Arguments) -> Result:
    async with _store(options) as store:
        await reached(partial(require_log, store), options.patience, reads=True)
        require_pyarrow("leaderless files")
        from leaderless.table.snapshot import locations

        return {"files": await locations(store)}


async def _status(options: Arguments) -> Result:
    async with _log(options) as log:
        status = await log.status()
    keys = [{"key": key, "next_offset": end} for key, end in status.keys.items()]
    return status._asdict() | {"keys": keys}


async def _fsck(options: Arguments) -> Result:
    async with _store(options) as store:
        # A store that is not there is told before the check.
        await patiently(partial(store.read, FORMAT), options.patience, reads=True)
        report = await fsck.check(store)
    result = report._asdict() | {"findings": [finding._asdict() for finding in report.findings]}
    if report.findings:
        names = sorted({finding.invariant for finding in report.findings})
        result["error"] = f"broken: {', '.join(names)}"
    return result


async def _bench(options: Arguments) -> Result:
    load = bench.Load(options.tasks, options.seconds, options.value_bytes, options.patience)
    async with _store(options) as store:
        appended, read = await bench.bench(store, load)
    figures = appended._asdict() | read._asdict()
    rounded = {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in figures.items()
    }
    return {"store": store.url, "prices": PRICES_AS_OF} | rounded


def _parsed(text: str | bytes, what: str) -> Value:
    try:
        return json_of(text)
    except Unfit as unfit:
        raise Unfit(f"{what}: {unfit}; --string takes it as a text") from None


def _lines_of(file: str) -> list[bytes]:
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Unfit(f"{file} cannot be read: {error.strerror}") from None
    return [line for line in text.split(b"\n") if line.strip()]


def _shown(record: Record) -> Result:
    return {"offset": record.offset, "value": message_of(record.value)}


OPERATIONS = {
    "init": Operation(arguments.init, _init),
    "produce": Operation(arguments.produce, _produce),
    "produce-batch": Operation(arguments.produce_batch, _produce_batch),
    "read": Operation(arguments.read, _read),
    "tail": Operation(arguments.tail, _tail),
    "keys": Operation(arguments.nothing, _keys),
    "consume": Operation(arguments.group, _consume),
    "ack": Operation(arguments.ack, _ack),
    "groups": Operation(arguments.nothing, _groups),
    "fence": Operation(arguments.nothing, _fence),
    "unfence": Operation(arguments.nothing, _unfence),
    "compact": Operation(arguments.nothing, _compact),
    "upgrade": Operation(arguments.nothing, _upgrade),
    "vacuum": Operation(arguments.vacuum, _vacuum),
    "retain": Operation(arguments.retain, _retain),
    "files": Operation(arguments.nothing, _files),
    "status": Operation(arguments.nothing, _status),
    "fsck": Operation(arguments.nothing, _fsck),
    "bench": Operation(arguments.bench, _bench),
}
