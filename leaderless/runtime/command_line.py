"""The node's command line: its options, their defaults and their help."""

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING

from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from leaderless.core.strategies import DEFAULT, STRATEGIES
from leaderless.core.strategy import Options
from leaderless.runtime.settings import LIN_KV, Settings

if TYPE_CHECKING:  # they take part of a start, and few nodes need them
    from pathlib import Path

    from leaderless.runtime.store_url import StorePlace

HELP_COLUMNS = 98
ON_A_BENCH = "On a bench: ./maelstrom test -w kafka --bin ./run.sh ... -- --strategy cas"
EXIT_STATUSES = (
    "exit status: 0 stdin ended; 2 wrong arguments, or the store cannot be used; 130 interrupted"
)
_DEFAULTS = Settings()
_LIMITS = _DEFAULTS.options.limits


def parse_options(arguments: Sequence[str], program: str) -> Settings:
    """Settings from options; `--help` and errors end the process as usual (0 and 2)."""
    parser = _parser(program)
    options = parser.parse_args(arguments)
    try:
        place = _place(options.store, options.store_option, options.client_patience_s)
    except ValueError as error:
        parser.error(str(error))
    if options.runs and (place is None or options.strategy != DEFAULT):
        parser.error(f"--runs needs --store, and the strategy {DEFAULT}")
    if find_spec(options.backend) is None:
        parser.error(f"--backend {options.backend}: it is not installed; pip install trio")
    if options.trace and not options.trace.parent.is_dir():
        parser.error(f"--trace {options.trace}: make the folder {options.trace.parent} first")
    return Settings(
        strategy=options.strategy,
        options=Options(
            freshness_s=options.freshness_ms / 1000,
            combine=options.combine == "on",
            durable_commits=options.commits == "durable",
            limits=Limits(
                message_bytes=int(options.message_max_mib * (1 << 20)),
                memory_bytes=int(options.memory_mib * (1 << 20)),
                lanes=1 if options.trace else _LIMITS.lanes,
                client_patience_s=options.client_patience_s,
            ),
            pace=Pace(
                message_worth_s=options.message_worth_ms / 1000,
                store_timeout_s=options.store_timeout_ms / 1000,
            ),
        ),
        log_level=options.log_level,
        backend=options.backend,
        trace=options.trace,
        place=place,
        runs=options.runs,
    )


def _place(url: str, given: Sequence[str], timeout_s: float) -> "StorePlace | None":
    if url == LIN_KV and not given:
        return None
    from leaderless.runtime.store_url import store_place_of

    return store_place_of(url, given, timeout_s)


class _Parser(argparse.ArgumentParser):
    """Shows the stores and exit statuses below its help."""

    def format_help(self) -> str:
        from leaderless.runtime.store_url import STORES

        self.epilog = f"stores:\n{STORES}\n\n{ON_A_BENCH}\n\n{EXIT_STATUSES}"
        return super().format_help()


class _Formatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults, and keeps the lines of the epilog.

    Its width is given, or argparse would ask the terminal at every start, by modules that a node does not use.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=HELP_COLUMNS)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default else action.help


def _parser(program: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=program,
        description="A node of a Kafka-style log without a leader. It speaks Maelstrom's protocol:\nJSON lines "
        "on stdin and stdout, logs on stderr.",
        allow_abbrev=False,
        formatter_class=_Formatter,
    )
    parser.add_argument(
        "--strategy",
        choices=sorted(STRATEGIES),
        default=_DEFAULTS.strategy,
        help="how the log is kept",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        default=LIN_KV,
        help="where the log is, listed below; a new test needs a prefix of its own in a real store",
    )
    parser.add_argument(
        "--store-option",
        action="append",
        metavar="NAME=VALUE",
        default=[],
        help="of a real store, may be repeated: endpoint=URL of an S3-compatible server, else "
        "AWS_ENDPOINT_URL; region=NAME of the bucket. Keys come from the environment alone",
    )
    parser.add_argument(
        "--runs",
        choices=["json", "parquet"],
        help="how a log that this node makes in a real store keeps its older records; the node refuses a log "
        "that keeps them in another way; parquet: files, which DuckDB, pandas and Spark read, on s3, gs, az "
        "and sqlite; it needs the package pyarrow (default: as the log does; json for a new one)",
    )
    parser.add_argument(
        "--freshness",
        dest="freshness_ms",
        type=_not_negative,
        metavar="MS",
        default=_DEFAULTS.options.freshness_s * 1000,
        help="a view older than this is renewed before it answers a poll; 0: polls are linearizable",
    )
    parser.add_argument(
        "--combine",
        choices=["on", "off"],
        default="on",
        help="whether batches may be handed over to another node under contention",
    )
    parser.add_argument(
        "--commits",
        choices=["durable", "deferred"],
        default="durable",
        help="of strategy leaderless. durable: a committed offset is in the store before it is acknowledged; "
        "deferred: it waits in memory for the next batch, which saves messages; a crash of the node loses the "
        "last seconds of them, and their messages are delivered again",
    )
    parser.add_argument(
        "--memory-mib",
        type=_positive,
        metavar="MIB",
        default=_LIMITS.memory_bytes / (1 << 20),
        help="about how much of the log is kept in memory; the rest is read back when it is polled",
    )
    parser.add_argument(
        "--message-max",
        dest="message_max_mib",
        type=_message_max,
        metavar="MIB",
        default=_LIMITS.message_bytes / (1 << 20),
        help="larger requests are refused, and so are those that the registers of the log have no room for",
    )
    parser.add_argument(
        "--message-worth-ms",
        type=_not_negative,
        metavar="MS",
        default=_DEFAULTS.options.pace.message_worth_s * 1000,
        help="how long a client may wait to save one message between servers: a higher price, fewer messages "
        "and later answers; with 0 nobody waits",
    )
    parser.add_argument(
        "--store-timeout-ms",
        type=_positive,
        metavar="MS",
        default=_DEFAULTS.options.pace.store_timeout_s * 1000,
        help="how long a store call may take before its outcome counts as unknown, until round trips were "
        "measured",
    )
    parser.add_argument(
        "--client-patience",
        dest="client_patience_s",
        type=_positive,
        metavar="S",
        default=_LIMITS.client_patience_s,
        help="how long a client waits for an answer; a request without an outcome gets an indefinite error "
        "a tenth of that before, and nothing after it",
    )
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        default=_DEFAULTS.log_level,
        help="what goes to stderr",
    )
    parser.add_argument(
        "--backend",
        choices=["asyncio", "trio"],
        default=_DEFAULTS.backend,
        help="the event loop; trio must be installed",
    )
    parser.add_argument(
        "--trace",
        type=_path,
        metavar="FILE",
        help="append the steps of the protocol to FILE, for `python -m specs.trace FILE`; strategy "
        "leaderless, which then has one batch under way at a time; nodes may share the file",
    )
    return parser


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def _not_negative(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = inf
    if not 0 <= value < inf:
        raise argparse.ArgumentTypeError(f"must be a number from 0 up, not {text!r}")
    return value


def _message_max(text: str) -> float:
    value = _positive(text)
    try:
        Limits(message_bytes=int(value * (1 << 20))).require_fit(Shape())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def _positive(text: str) -> float:
    value = _not_negative(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return value
