"""The arguments that every command on a log takes, before its name or after it, and its exit statuses.

It imports nothing else, so that `leaderless --help` needs no other package.
"""

import argparse
import os

DEFAULT_STORE = "sqlite:///leaderless.db"
EXIT_STATUSES = """\
exit status: 0 done; 1 an error, or `fsck` found something, or `ack` met another offset; 2 wrong arguments;
130 interrupted"""


def add_common(parser: argparse.ArgumentParser) -> None:
    """Where the log is, how to reach it, how long to wait, and the form of what is printed."""
    store = os.environ.get("LEADERLESS_STORE", DEFAULT_STORE)
    group = parser.add_argument_group("options of every command on a log")
    add = group.add_argument
    add("--store", metavar="URL", default=store, help="where the log is; default: LEADERLESS_STORE, or else "
        f"{DEFAULT_STORE}")  # fmt: skip
    add("--topic", metavar="NAME", help="one of several logs in the store; a short text")
    add(
        "--endpoint",
        metavar="URL",
        help="of an S3-compatible server, such as http://127.0.0.1:7480; default: AWS_ENDPOINT_URL",
    )
    add("--region", metavar="NAME", help="of the bucket; default: AWS_REGION")
    add(
        "--patience",
        type=seconds,
        default=30.0,
        metavar="S",
        help="seconds that a call may take; default 30",
    )
    add("--json", action="store_true", help="print one JSON object; `tail` prints one a record")


def seconds(text: str) -> float:
    """Seconds, more than 0. Raises `argparse.ArgumentTypeError`."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds, more than 0, not {text!r}")
    return number
