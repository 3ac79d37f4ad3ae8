"""The commands of `leaderless` that work on a log: each reads its arguments and prints what came of it.

With `--json` a command prints one JSON object (`tail`: one a record), also for an error. Without it `read` and
`tail` print a line a record, and errors go to stderr.
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
from leaderless.library.common_arguments import EXIT_STATUSES, add_common
from leaderless.library.log import Log
from leaderless.library.opening import open_log
from leaderless.library.output import Plain, note, show, show_record, show_text
from leaderless.library.place import ensure_log, place_of, require_log, require_pyarrow
from leaderless.library.record import Record
from leaderless.store.calls import patiently, reached
from leaderless.store.counted import PRICES_AS_OF
from leaderless.store.names import FORMAT
from leaderless.store.options import StoreOptions
from leaderless.store.port import Store
from leaderless.store.probe import probe
from leaderless.store.urls import URLS
from leaderless.store.values import Value, json_of, message_of

BELOW_HELP = f"""\
stores:
{URLS}

Keys of a store come from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

{EXIT_STATUSES}"""
INTERRUPTED = 130
Arguments = argparse.Namespace
Result = dict[str, object]


class Operation(NamedTuple):
    """A command: its arguments, what it does with them, and an example of them."""

    add: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Arguments], Awaitable[Result | None]]
    example: str = ""


def main(name: str, summary: str, given: Sequence[str]) -> int:
    """Run the command `name`; returns the exit status."""
    operation = OPERATIONS[name]
    example = f"leaderless {name} {operation.example}"
    parser = argparse.ArgumentParser(
        prog=f"leaderless {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example.rstrip()}\n\n{BELOW_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    operation.add(parser)
    add_common(parser)
    options = parser.parse_args(given)
    handler = logging.StreamHandler()
    handler.setFormatter(Plain("%(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
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
        told = {"error": str(error), "kind": kind, "may_have_happened": unsure}
        show(told, options.json, sys.stdout if options.json else sys.stderr)
        return 1
    if result is not None:
        show(result, options.json)
    return 1 if result is not None and "error" in result else 0


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


async def _read(options: Arguments) -> Result | None:
    async with _log(options) as log:
        records = await log.read(options.key, options.offset, options.limit)
        end = (await log.keys()).get(options.key, 0) if records else 0
    after = records[-1].offset + 1 if records else options.offset
    left = max(0, end - after)
    if options.json:
        shown = [_shown(record) for record in records]
        return {"key": options.key, "records": shown, "next": after, "left": left}
    for record in records:
        show_record(record.key, record.offset, message_of(record.value))
    if left:
        note(
            f"{left} more: --offset {after} goes on there, --limit N shows more than {options.limit}"
        )
    elif not records:
        note(f"no records from offset {after} on")
    return None


async def _tail(options: Arguments) -> None:
    left = options.count
    async with _log(options) as log:
        if left == 0:
            return
        async for record in log.tail(options.keys, options.offset, options.latency):
            if options.json:
                show({"key": record.key, **_shown(record)}, as_json=True)
            else:
                show_record(record.key, record.offset, message_of(record.value))
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
        group, key, offset = options.group, options.key, options.offset
        acked = await groups.ack(log.cursors, group, key, offset, through=options.through)
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


async def _vacuum(options: Arguments) -> Result:
    async with _log(options) as log:
        return (await log.vacuum(options.retention))._asdict()


async def _retain(options: Arguments) -> Result:
    require_pyarrow("leaderless retain")
    from leaderless.table.retention import Policy

    policy = Policy(options.bytes, options.age, options.processed)
    async with _log(options) as log:
        return (await log.retain(policy))._asdict()


async def _files(options: Arguments) -> Result | None:
    async with _store(options) as store:
        await reached(partial(require_log, store), options.patience, reads=True)
        require_pyarrow("leaderless files")
        from leaderless.table.snapshot import locations

        found = await locations(store)
    if options.json:
        return {"files": found}
    for location in found:
        show_text(location)
    if not found:
        note("no files yet: the newest records are in none")
    return None


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
    "init": Operation(arguments.init, _init, "--store s3://my-bucket/orders"),
    "produce": Operation(arguments.produce, _produce, "eu '{\"item\": 7}'"),
    "produce-batch": Operation(arguments.produce_batch, _produce_batch, "eu lines.json"),
    "read": Operation(arguments.read, _read, "eu --offset 100 --limit 50"),
    "tail": Operation(arguments.tail, _tail, "eu us --offset earliest | cut -f 3"),
    "keys": Operation(arguments.nothing, _keys, "--json"),
    "consume": Operation(arguments.group, _consume, "eu --group billing"),
    "ack": Operation(arguments.ack, _ack, "eu 7 --group billing"),
    "groups": Operation(arguments.nothing, _groups),
    "fence": Operation(arguments.nothing, _fence),
    "unfence": Operation(arguments.nothing, _unfence),
    "compact": Operation(arguments.nothing, _compact),
    "vacuum": Operation(arguments.vacuum, _vacuum, "--retention 7200"),
    "retain": Operation(arguments.retain, _retain, "--age 604800"),
    "files": Operation(arguments.nothing, _files),
    "status": Operation(arguments.nothing, _status, "--json"),
    "fsck": Operation(arguments.nothing, _fsck, "--store sqlite:///orders.db"),
    "bench": Operation(arguments.bench, _bench, "--seconds 10 --tasks 64"),
}
