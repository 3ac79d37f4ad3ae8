"""The arguments of the commands of `leaderless`: each function declares those of a command, or reads one.

Functions that read an argument raise `argparse.ArgumentTypeError`.
"""

import argparse
from typing import get_args

from leaderless.core.shape import Runs
from leaderless.library.common_arguments import seconds
from leaderless.library.maintenance import RETENTION_S_MIN
from leaderless.library.tail import LATENCY_S, Start
from leaderless.store.options import install


def key(parser: argparse.ArgumentParser) -> None:
    """The key."""
    parser.add_argument("key", help="the key; any text of 1024 bytes at most")


def produce(parser: argparse.ArgumentParser) -> None:
    """A key and a value."""
    key(parser)
    parser.add_argument(
        "value",
        help="a JSON value, such as 7 or '{\"item\": 7}'; an integer from -2^63 to 2^64 - 1",
    )
    parser.add_argument(
        "--string", action="store_true", help="take the value as a text, not as JSON"
    )


def produce_batch(parser: argparse.ArgumentParser) -> None:
    """A key, and where the values are."""
    key(parser)
    parser.add_argument(
        "file", nargs="?", default="-", help="a JSON value in each line; `-`, the default: stdin"
    )


def read(parser: argparse.ArgumentParser) -> None:
    """A key, and which records."""
    key(parser)
    parser.add_argument(
        "--offset", type=offset, default=0, metavar="N", help="the first offset; default 0"
    )
    parser.add_argument(
        "--limit", type=positive, default=100, metavar="N", help="records at most; default 100"
    )


def tail(parser: argparse.ArgumentParser) -> None:
    """Keys, where to begin, and when to end."""
    parser.add_argument(
        "keys", nargs="+", metavar="key", help="a key; any text of 1024 bytes at most"
    )
    parser.add_argument(
        "--offset",
        type=start,
        default="latest",
        metavar="N",
        help="the first offset, or earliest (what is left), or latest, the default (what comes from now on)",
    )
    parser.add_argument("--count", type=offset, metavar="N", help="end after N records")
    parser.add_argument(
        "--latency",
        type=seconds,
        default=LATENCY_S,
        metavar="S",
        help=f"how many seconds late a record may come; default {LATENCY_S:g}",
    )


def group(parser: argparse.ArgumentParser) -> None:
    """A key and a group of consumers."""
    key(parser)
    parser.add_argument(
        "--group",
        metavar="NAME",
        default="default",
        help='the group of consumers; default "default"',
    )


def ack(parser: argparse.ArgumentParser) -> None:
    """The same, and the record that was processed."""
    group(parser)
    parser.add_argument("offset", type=offset, help="of the record that was processed")
    parser.add_argument(
        "--through",
        action="store_true",
        help="all records up to this one were processed, or are left out",
    )


def vacuum(parser: argparse.ArgumentParser) -> None:
    """The retention."""
    parser.add_argument(
        "--retention",
        type=seconds,
        default=3600.0,
        metavar="S",
        help=f"objects younger than so many seconds stay; {RETENTION_S_MIN:g} or more, default 3600",
    )


def retain(parser: argparse.ArgumentParser) -> None:
    """What may be deleted."""
    add = parser.add_argument
    add(
        "--bytes",
        type=offset,
        metavar="N",
        help="files, while the newer ones have N bytes or more",
    )
    add("--age", type=seconds, metavar="S", help="files whose records are all older than S seconds")
    add(
        "--processed", action="store_true", help="files that all groups of consumers have processed"
    )


def init(parser: argparse.ArgumentParser) -> None:
    """How a new log keeps its runs."""
    parser.add_argument(
        "--runs",
        choices=get_args(Runs),
        help="what a new log keeps its older records in, for all its life; default json; "
        f"parquet needs {install('table')}",
    )


def bench(parser: argparse.ArgumentParser) -> None:
    """The load."""
    add = parser.add_argument
    add("--tasks", type=positive, default=16, metavar="N", help="append at once; default 16")
    add("--seconds", type=seconds, default=5.0, metavar="S", help="seconds of appends; default 5")
    add(
        "--value-bytes",
        type=positive,
        default=100,
        metavar="N",
        help="bytes of a value; default 100",
    )


def nothing(_parser: argparse.ArgumentParser) -> None:
    """No argument."""


def start(text: str) -> Start:
    """Where a tail begins."""
    words: dict[str, Start] = {"earliest": "earliest", "latest": "latest"}
    return words[text] if text in words else offset(text)


def offset(text: str) -> int:
    """A number from 0 up."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number from 0 up, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    """A number from 1 up."""
    if (number := offset(text)) == 0:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
