"""Arguments as rows of tables, the common ones of the commands of `leaderless`, and what reads a number.

It imports nothing else, so that `leaderless --help` needs no other package.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from math import inf, nan, ulp
from typing import Any, TypeAlias

Argument: TypeAlias = tuple[tuple[str, ...], dict[str, Any]]  # a row
Reader: TypeAlias = Callable[[str], float]


def argument(*words: str, **given: Any) -> Argument:
    """Make a row of what `argparse.ArgumentParser.add_argument` takes."""
    return words, given


def add_arguments(parser: argparse._ActionsContainer, arguments: Iterable[Argument]) -> None:
    """Add the rows to a parser, or to a group of one."""
    for words, given in arguments:
        parser.add_argument(*words, **given)


def _number(kind: Reader, least: float, what: str, text: str) -> float:
    """The number of a text. Raises `argparse.ArgumentTypeError` for another one than `what` says."""
    try:
        number = kind(text)
    except ValueError:
        number = nan
    if not least <= number < inf:
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
    return number


def _whole(text: str) -> float:
    return int(text) if text.isdecimal() else nan


not_negative: Reader = partial(_number, float, 0, "a number from 0 up")
positive: Reader = partial(_number, float, ulp(0), "a number, more than 0")
seconds: Reader = partial(_number, float, ulp(0), "seconds, more than 0")
natural: Reader = partial(_number, _whole, 0, "a whole number from 0 up")
count: Reader = partial(_number, _whole, 1, "a whole number from 1 up")


def ago(text: str) -> float:
    """The time in seconds since 1970 that was so long ago."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    if text[-1:] not in units:
        raise argparse.ArgumentTypeError(f"must be such as 90s, 15m, 2h or 3d, not {text!r}")
    return time.time() - seconds(text[:-1]) * units[text[-1]]


def moment(text: str) -> float:
    """A time in seconds since 1970; one without a zone is of UTC."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be such as 2026-11-28T10:00, not {text!r}"
        ) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def start(text: str) -> str | float:
    """Where a tail begins."""
    return text if text in ("earliest", "latest") else natural(text)


def offset_of(text: str) -> tuple[str, float]:
    """A key and an offset of it."""
    key, equals, offset = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be KEY=OFFSET, such as eu=100, not {text!r}")
    return key, natural(offset)


DEFAULT_STORE = "sqlite:///leaderless.db"
COMMON = (
    argument(
        "--store",
        metavar="URL",
        help=f"where the log is; default: LEADERLESS_STORE, or else {DEFAULT_STORE}",
    ),
    argument("--topic", metavar="NAME", help="one of several logs in the store; a short text"),
    argument(
        "--endpoint",
        metavar="URL",
        help="of an S3-compatible server, such as http://127.0.0.1:7480; default: AWS_ENDPOINT_URL",
    ),
    argument("--region", metavar="NAME", help="of the bucket; default: AWS_REGION"),
    argument(
        "--patience",
        type=seconds,
        default=30.0,
        metavar="S",
        help="seconds that a call may take; default 30",
    ),
    argument(
        "--peers",
        type=lambda text: None if text == "none" else text,
        metavar="WHERE",
        help="which processes commit for each other: machine, none, or HOST or HOST:PORT, an address of this "
        "machine, for those of all machines; default: LEADERLESS_PEERS, or else machine",
    ),
    argument(
        "--json", action="store_true", help="print one JSON object; `tail` prints one a record"
    ),
)
