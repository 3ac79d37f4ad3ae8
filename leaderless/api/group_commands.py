"""The commands of `leaderless` that work on groups of consumers: see `leaderless.api.command`."""

from argparse import Namespace
from typing import TYPE_CHECKING

from leaderless.api.command import KEY, Result, command, log_of, row_of
from leaderless.arguments import argument, natural

if TYPE_CHECKING:
    from leaderless.api.log import Log

GROUP = argument(
    "--group",
    metavar="NAME",
    default="default",
    help='the group of consumers; default "default"',
)


@command(
    log_of,
    "show the record that a group processes next; its cursor stays",
    KEY,
    GROUP,
    example="eu --group billing",
)
async def _consume(log: "Log", options: Namespace) -> Result:
    from leaderless.groups.consumer import consume

    record = await consume(log.read, log.cursors, options.group, options.key)
    found = {"empty": True} if record is None else row_of(record)
    return {"group": options.group, "key": options.key} | found


@command(
    log_of,
    "acknowledge the record that a group has processed",
    KEY,
    GROUP,
    argument("offset", type=natural, help="of the record that was processed"),
    argument(
        "--through",
        action="store_true",
        help="all records up to this one were processed, or are left out",
    ),
    example="eu 7 --group billing",
)
async def _ack(log: "Log", options: Namespace) -> Result:
    from leaderless.groups.consumer import ack

    acked = await ack(
        log.cursors, options.group, options.key, options.offset, through=options.through
    )
    result: Result = acked._asdict()
    if acked.status == "offset_mismatch":
        result["error"] = f"the group is at offset {acked.next}, not {options.offset}"
    return result


@command(log_of, "list groups of consumers and where they are")
async def _groups(log: "Log", _: Namespace) -> Result:
    return {
        "groups": [
            {"group": group, "members": len(each.members), "key": key, **lag._asdict()}
            for group, each in (await log.groups()).items()
            for key, lag in each.keys.items()
        ]
    }


@command(
    log_of,
    "append the records again that a group has buried, each once",
    argument("group", help="the group of consumers"),
    argument("keys", nargs="*", default=[], metavar="key", help="whose records; default: all"),
    argument("--to", metavar="KEY", help="the key that gets them; default: their own"),
    example="billing eu",
)
async def _redrive(log: "Log", options: Namespace) -> Result:
    letters = await log.redrive(options.group, options.keys, options.to)
    return {"group": options.group, "letters": [each._asdict() for each in letters]}
