"""The commands of `leaderless` that work on a log. Each is one place: help, arguments, function.

A command imports what it needs when it runs, so that `leaderless --help` needs no other package, and no command
the packages of another.
"""

import sys
from argparse import Namespace
from contextlib import nullcontext
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from leaderless.api.command import KEY, Result, command, log_of, place_named, row_of, store_of
from leaderless.arguments import (
    ago,
    argument,
    count,
    moment,
    natural,
    offset_of,
    seconds,
    start,
)
from leaderless.errors import Indefinite, Unfit

if TYPE_CHECKING:
    from leaderless.api.log import Log
    from leaderless.store.port import Store


def _ends(keys: dict[str, int]) -> list[Result]:
    return [{"key": key, "next_offset": end} for key, end in keys.items()]


_CLOUD_OF = {"gs": "gcs", "az": "azure"}
TIMES = (
    argument("--since", type=ago, dest="at", metavar="AGO", help="begin so long ago: 90s, 15m, 2h"),
    argument("--from", type=moment, dest="at", metavar="TIME", help="begin at a time, of UTC"),
)


@command(
    store_of,
    "make a log, after a look whether the store can hold one",
    argument(
        "--runs",
        choices=("json", "parquet"),
        help="what a new log keeps its older records in, for all its life; default json; "
        "parquet needs pip install '.[table]' in a checkout of leaderless",
    ),
    argument(
        "--compress",
        action="store_const",
        const="zstd",
        help="compress what the log stores, for all its life; all who use it need pip install '.[zstd]' in a "
        "checkout of leaderless",
    ),
    example="--store s3://my-bucket/orders",
)
async def _init(store: "Store", options: Namespace) -> Result:
    from leaderless.hosting.place import ensure_log
    from leaderless.store.calls import patiently
    from leaderless.store.probe import probe

    try:
        probed = await patiently(partial(probe, store), options.patience)
    except Indefinite as silent:
        raise type(silent)(
            f"the store does not answer as it should: {silent}. Check its address and the network"
        ) from silent
    created, shape = await ensure_log(store, options.runs, options.compress)
    return {
        "store": store.url,
        "created": created,
        "runs": shape.runs,
        "compression": shape.compression,
        "request_ms": round(probed.request_s * 1000, 1),
        **({"etags": probed.etags} if probed.etags else {}),
    }


@command(store_of, "give the log of an earlier program times and headers; stop that one first")
async def _upgrade(store: "Store", options: Namespace) -> Result:
    from leaderless.store.calls import reached
    from leaderless.store.format import shape_in, upgrade

    await reached(partial(shape_in, store), options.patience, reads=True)
    before, now = await upgrade(store)
    return {"store": store.url, "format_before": before, "format": now}


@command(
    nullcontext,
    "append one value",
    KEY,
    argument(
        "value",
        help="a JSON value, such as 7 or '{\"item\": 7}'; an integer from -2^63 to 2^64 - 1",
    ),
    argument("--string", action="store_true", help="take the value as a text, not as JSON"),
    argument("--expected", type=natural, metavar="N", help="append at offset N, or not at all"),
    argument("--token", type=natural, metavar="N", help="refuse it if the key has a higher token"),
    example="eu '{\"item\": 7}'",
)
async def _produce(_: Namespace, options: Namespace) -> Result:
    from leaderless.api.output import given_value

    value = options.value if options.string else given_value(options.value, "the value")
    async with log_of(options) as log:
        condition = {"expected": options.expected, "token": options.token}
        return {"key": options.key, "offset": await log.append(options.key, value, **condition)}


@command(
    nullcontext,
    "append the values of JSON lines at consecutive offsets",
    KEY,
    argument(
        "file", nargs="?", default="-", help="a JSON value in each line; `-`, the default: stdin"
    ),
    example="eu lines.json",
)
async def _produce_batch(_: Namespace, options: Namespace) -> Result:
    from leaderless.api.output import given_value, lines_of

    lines = lines_of(options.file)
    values = [given_value(line, f"line {number}") for number, line in enumerate(lines, 1)]
    async with log_of(options) as log:
        offsets = await log.append_many(options.key, values)
    return {"key": options.key, "first": offsets[0], "last": offsets[-1], "count": len(offsets)}


@command(
    nullcontext,
    "show records of a key",
    KEY,
    argument("--offset", type=natural, default=0, metavar="N", help="the first offset; default 0"),
    *TIMES,
    argument("--limit", type=count, default=100, metavar="N", help="records at most; default 100"),
    argument("--last", type=count, metavar="N", help="the newest N records, and no others"),
    example="eu --offset 100 --limit 50",
)
async def _read(_: Namespace, options: Namespace) -> Result | None:
    from leaderless.api.output import note, show_record

    async with log_of(options) as log:
        at, key = options.at, options.key
        records = await log.read(key, options.offset, options.limit, at, options.last)
        start = options.offset if at is None or records else await log.offset_at(key, at)
        end = (await log.keys()).get(options.key, 0) if records else 0
    after = records[-1].offset + 1 if records else start
    left = max(0, end - after)
    if options.json:
        shown = [row_of(record) for record in records]
        return {"key": options.key, "records": shown, "next": after, "left": left}
    for record in records:
        show_record(record)
    if left:
        note(
            f"{left} more: --offset {after} goes on there, --limit N shows more than {options.limit}"
        )
    elif not records:
        note(f"no records from offset {after} on")
    return None


@command(
    log_of,
    "show records as they come",
    argument("keys", nargs="+", metavar="key", help="a key; any text of 1024 bytes at most"),
    argument(
        "--offset",
        type=start,
        default="latest",
        metavar="N",
        help="the first offset, or earliest (what is left), or latest, the default (what comes from now on)",
    ),
    *TIMES,
    argument("--count", type=natural, metavar="N", help="end after N records"),
    argument(
        "--latency",
        type=seconds,
        default=2.0,
        metavar="S",
        help="how many seconds late a record may come; default 2",
    ),
    example="eu us --offset earliest | cut -f 3",
)
async def _tail(log: "Log", options: Namespace) -> None:
    from leaderless.api.output import show, show_record

    records = log.tail(options.keys, options.offset, options.latency, options.at)
    for _ in repeat(None) if options.count is None else range(options.count):
        if (record := await anext(records, None)) is None:
            break  # all keys are closed
        if options.json:
            show({"key": record.key, **row_of(record)}, as_json=True)
        else:
            show_record(record)


@command(log_of, "list the keys", example="--json")
async def _keys(log: "Log", _: Namespace) -> Result:
    return {"keys": _ends(await log.keys())}


@command(log_of, "close the log for appends")
async def _fence(log: "Log", _: Namespace) -> Result:
    return {"state": "fenced", "epoch": await log.fence()}


@command(log_of, "end a key: nothing is appended to it any more", KEY, example="eu")
async def _close(log: "Log", options: Namespace) -> Result:
    return {"key": options.key, "next_offset": await log.close(options.key)}


@command(log_of, "open a fenced log again")
async def _unfence(log: "Log", _: Namespace) -> Result:
    return {"state": "open", "epoch": await log.unfence()}


@command(log_of, "put sealed segments into runs now")
async def _compact(log: "Log", _: Namespace) -> Result:
    return {"segments_compacted": await log.compact()}


@command(
    log_of,
    "delete objects of values that no record refers to",
    argument(
        "--retention",
        type=seconds,
        default=3600.0,
        metavar="S",
        help="objects younger than so many seconds stay; 600 or more, default 3600",
    ),
    example="--retention 7200",
)
async def _vacuum(log: "Log", options: Namespace) -> Result:
    return (await log.vacuum(options.retention))._asdict()


@command(
    log_of,
    "delete the oldest files of the log",
    argument(
        "--bytes",
        type=natural,
        metavar="N",
        help="files, while the newer ones have N bytes or more",
    ),
    argument(
        "--age", type=seconds, metavar="S", help="files whose records are all older than S seconds"
    ),
    argument(
        "--processed", action="store_true", help="files that all groups of consumers have processed"
    ),
    example="--age 604800",
)
async def _retain(log: "Log", options: Namespace) -> Result:
    from leaderless.hosting.place import require_pyarrow

    require_pyarrow("leaderless retain")
    from leaderless.table.retention import Policy

    return (await log.retain(Policy(options.bytes, options.age, options.processed)))._asdict()


@command(
    log_of,
    "delete the records of a key below an offset",
    KEY,
    argument("before", type=natural, help="the first offset that stays"),
    example="eu 1000",
)
async def _trim(log: "Log", options: Namespace) -> Result:
    return (await log.trim(options.key, options.before))._asdict()


@command(
    log_of,
    "show how the log is",
    argument("--prometheus", action="store_true", help="as metrics, with the lag of all groups"),
    example="--json",
)
async def _status(log: "Log", options: Namespace) -> Result | None:
    if options.prometheus:
        sys.stdout.write(await log.metrics())
        return None
    status = await log.status()
    # This process has handed nothing over.
    told = {name: value for name, value in status._asdict().items() if name != "hand_overs"}
    return told | {"keys": _ends(status.keys)}


@command(
    store_of,
    "check every invariant of the log, and name what is broken",
    example="--store sqlite:///orders.db",
)
async def _fsck(store: "Store", options: Namespace) -> Result:
    from leaderless.store.calls import patiently
    from leaderless.store.names import FORMAT
    from leaderless.upkeep.fsck import check

    # A store that is not there is told before the check.
    await patiently(partial(store.read, FORMAT), options.patience, reads=True)
    report = await check(store)
    result = report._asdict() | {"findings": [finding._asdict() for finding in report.findings]}
    if report.findings:
        names = {finding.invariant for finding in report.findings}
        result["error"] = f"broken: {', '.join(sorted(names))}"
    return result


@command(
    nullcontext,
    "copy a log in use to another place: a backup, a move, a fork; cut off, it goes on when it is repeated",
    argument("source", metavar="FROM", help="the URL of the log that is copied; --topic is of it"),
    argument("target", metavar="TO", help="a URL without a log, or with an unfinished copy"),
    argument("--key", action="append", dest="keys", metavar="KEY", help="this key; repeatable"),
    argument("--until", action="append", type=offset_of, metavar="KEY=OFFSET", help="below it"),
    argument("--at", type=moment, metavar="TIME", help="what was committed before, in UTC"),
    argument("--runs", choices=("json", "parquet"), help="of a new log at TO; default: as at FROM"),
    argument("--to-topic", metavar="NAME", help="the topic at TO"),
    argument("--to-endpoint", metavar="URL", help="of the server of TO; default: --endpoint"),
    argument("--to-region", metavar="NAME", help="of the bucket of TO; default: --region"),
    example="sqlite:///orders.db s3://my-bucket/orders --at 2026-11-28T10:00",
)
async def _copy(_: Namespace, options: Namespace) -> Result:
    from leaderless.api.copying import copy_log
    from leaderless.api.output import note

    there = {
        "topic": options.to_topic,
        "endpoint": options.to_endpoint or options.endpoint,
        "region": options.to_region or options.region,
    }
    copied = await copy_log(
        options.source,
        options.target,
        keys=options.keys,
        until=dict(options.until or ()),
        at=options.at,
        runs=options.runs,
        source_options={name: getattr(options, name) for name in there},
        target_options=there,
        patience_s=options.patience,
        told=lambda done, total: note(f"copied {done} of {total} records"),
    )
    return copied._asdict()


@command(
    store_of,
    "measure appends and reads, their requests and their price, on a log of its own",
    argument("--tasks", type=count, default=16, metavar="N", help="append at once; default 16"),
    argument(
        "--processes", type=count, default=0, metavar="N", help="processes; default: this one"
    ),
    argument("--seconds", type=seconds, default=5.0, metavar="S", help="of appends; default 5"),
    argument("--value-bytes", type=count, default=100, metavar="N", help="of a value; default 100"),
    argument("--cloud", choices=("s3", "s3-express", "azure", "gcs"), help="be as slow as there"),
    example="--seconds 10 --tasks 64",
)
async def _bench(store: "Store", options: Namespace) -> Result:
    from leaderless.api.bench import Load, bench
    from leaderless.store.clouds import CLOUDS

    if options.processes and options.store.startswith("memory:"):
        raise Unfit(f"--processes: a store in memory is that of one process, got {options.store}")
    load = Load(
        options.tasks,
        options.seconds,
        options.value_bytes,
        options.patience,
        options.processes,
        options.peers,
    )
    appended, read = await bench(store, load, partial(place_named, options))
    # A store in no cloud has the prices of S3: they say what it would cost.
    prices = CLOUDS[options.cloud or _CLOUD_OF.get(store.url[:2], "s3")].prices
    return {
        "store": store.url,
        **({"cloud": options.cloud} if options.cloud else {}),
        "prices": prices or None,
        **{
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in (appended._asdict() | read._asdict()).items()
            if prices or name != "usd_a_million"
        },
    }


@command(
    nullcontext,
    "try another implementation of docs/SPEC.md, a line a row of its section 17",
    argument(
        "--program",
        required=True,
        metavar="CMD",
        help="it reads JSON lines on stdin, and answers on stdout: `pydoc leaderless.conformance` has them. "
        "Its store is a log of the kit: --store sqlite, the default, or --store s3",
    ),
    argument("--only", metavar="RULE", help="the rows of one rule, such as R20"),
    example="--store s3 --program 'python -m leaderless.conformance.example' --only R20",
)
async def _conformance(_: Namespace, options: Namespace) -> Result:
    from leaderless.conformance.programs import played

    return await played(
        options.program, options.store, options.only, options.patience, options.json
    )
