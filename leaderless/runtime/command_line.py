"""The node's command line: its options, their defaults and their help.

Keys of a store stand in no argument, because every user of a machine can read those of a process. They come
from the environment, under the names that the stores' own tools have.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from leaderless.arguments import Argument, add_arguments, argument, not_negative, positive
from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from leaderless.core.strategies import DEFAULT, STRATEGIES
from leaderless.core.strategy import Options
from leaderless.runtime.settings import LIN_KV, Settings, StorePlace
from leaderless.store.options import URLS, StoreOptions, without_secrets

if TYPE_CHECKING:  # it takes part of a start, and few nodes need it
    from pathlib import Path

MIB = 1 << 20
HELP_COLUMNS = 98  # given, or argparse would ask the terminal, by modules that a node does not use
STORE_OPTIONS = ("endpoint", "region")
_FOR_NODES = "\n".join(line for line in URLS.splitlines() if not line.startswith("memory:"))
BELOW_HELP = f"""\
stores:
{LIN_KV:<27} the service of the bench, by messages (default)
{_FOR_NODES}

On a bench: ./maelstrom test -w kafka --bin ./run.sh ... -- --strategy cas

exit status: 0 stdin ended; 2 wrong arguments, or the store cannot be used; 130 interrupted"""
_IN_ENVIRONMENT = (
    "stands in the environment, not on the command line, which every user of the machine can read: "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ETCDCTL_USER and ETCDCTL_PASSWORD"
)
_DEFAULTS = Settings()
_LIMITS = _DEFAULTS.options.limits


def parse_options(arguments: Sequence[str], program: str = "run.sh") -> Settings:
    """Settings from options; `--help` and errors end the process as usual (0 and 2)."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="A node of a Kafka-style log without a leader. It speaks Maelstrom's protocol:\nJSON lines "
        "on stdin and stdout, logs on stderr.",
        epilog=BELOW_HELP,
        allow_abbrev=False,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=HELP_COLUMNS),
    )
    add_arguments(parser, OPTIONS)
    options = parser.parse_args(arguments)
    try:
        place = store_place(options.store, options.store_option, options.client_patience_s)
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
                message_bytes=int(options.message_max_mib * MIB),
                memory_bytes=int(options.memory_mib * MIB),
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


def store_place(url: str, given: Sequence[str], timeout_s: float) -> StorePlace | None:
    """The place that `--store` and each `--store-option` name; None for `lin-kv`.

    `timeout_s`: how long one request may take. Raises `ValueError`, whose text says what to write instead.
    """
    named = _named(given)
    if url == LIN_KV:
        if named:
            raise ValueError("--store-option needs --store")
        return None
    if url.startswith("memory:"):
        raise ValueError(
            "--store memory: nodes are processes, and each would have a store of its own. "
            "Use sqlite:///FILE"
        )
    if without_secrets(url) != url:
        raise ValueError(
            f"--store {without_secrets(url)}: what stands before '@' {_IN_ENVIRONMENT}"
        )
    return StorePlace(url, StoreOptions(**named, timeout_s=timeout_s))


def _named(given: Sequence[str]) -> dict[str, str]:
    named = {}
    for each in given:
        name, is_given, value = each.partition("=")
        if "key" in name or "user" in name or "password" in name or "secret" in name:
            raise ValueError(f"--store-option {name}: a secret {_IN_ENVIRONMENT}")
        if name not in STORE_OPTIONS or not is_given:
            raise ValueError(
                f"--store-option {each}: write NAME=VALUE, of {', '.join(STORE_OPTIONS)}"
            )
        named[name] = value
    return named


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def _message_max(text: str) -> float:
    value = positive(text)
    try:
        Limits(message_bytes=int(value * MIB)).require_fit(Shape())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def _option(word: str, text: str, **given: Any) -> Argument:
    shown = f"{text} (default: %(default)s)" if given.get("default") else text
    return argument(word, help=shown, **given)


OPTIONS = (
    _option(
        "--strategy",
        "how the log is kept",
        choices=sorted(STRATEGIES),
        default=_DEFAULTS.strategy,
    ),
    _option(
        "--store",
        "where the log is, listed below; a new test needs a prefix of its own in a real store",
        metavar="URL",
        default=LIN_KV,
    ),
    _option(
        "--store-option",
        "of a real store, may be repeated: endpoint=URL of an S3-compatible server, else "
        "AWS_ENDPOINT_URL; region=NAME of the bucket. Keys come from the environment alone",
        action="append",
        metavar="NAME=VALUE",
        default=[],
    ),
    _option(
        "--runs",
        "how a log that this node makes in a real store keeps its older records; the node refuses a log "
        "that keeps them in another way; parquet: files, which DuckDB, pandas and Spark read, on s3, gs, az "
        "and sqlite; it needs the package pyarrow (default: as the log does; json for a new one)",
        choices=["json", "parquet"],
    ),
    _option(
        "--freshness",
        "a view older than this is renewed before it answers a poll; 0: polls are linearizable",
        dest="freshness_ms",
        type=not_negative,
        metavar="MS",
        default=_DEFAULTS.options.freshness_s * 1000,
    ),
    _option(
        "--combine",
        "whether batches may be handed over to another node under contention",
        choices=["on", "off"],
        default="on",
    ),
    _option(
        "--commits",
        "of strategy leaderless. durable: a committed offset is in the store before it is acknowledged; "
        "deferred: it waits in memory for the next batch, which saves messages; a crash of the node loses the "
        "last seconds of them, and their messages are delivered again",
        choices=["durable", "deferred"],
        default="durable",
    ),
    _option(
        "--memory-mib",
        "about how much of the log is kept in memory; the rest is read back when it is polled",
        type=positive,
        metavar="MIB",
        default=_LIMITS.memory_bytes / MIB,
    ),
    _option(
        "--message-max",
        "larger requests are refused, and so are those that the registers of the log have no room for",
        dest="message_max_mib",
        type=_message_max,
        metavar="MIB",
        default=_LIMITS.message_bytes / MIB,
    ),
    _option(
        "--message-worth-ms",
        "how long a client may wait to save one message between servers: a higher price, fewer messages "
        "and later answers; with 0 nobody waits",
        type=not_negative,
        metavar="MS",
        default=_DEFAULTS.options.pace.message_worth_s * 1000,
    ),
    _option(
        "--store-timeout-ms",
        "how long a store call may take before its outcome counts as unknown, until round trips were "
        "measured",
        type=positive,
        metavar="MS",
        default=_DEFAULTS.options.pace.store_timeout_s * 1000,
    ),
    _option(
        "--client-patience",
        "how long a client waits for an answer; a request without an outcome gets an indefinite error "
        "a tenth of that before, and nothing after it",
        dest="client_patience_s",
        type=positive,
        metavar="S",
        default=_LIMITS.client_patience_s,
    ),
    _option(
        "--log-level",
        "what goes to stderr",
        choices=["debug", "info", "warning", "error"],
        default=_DEFAULTS.log_level,
    ),
    _option(
        "--backend",
        "the event loop; trio must be installed",
        choices=["asyncio", "trio"],
        default=_DEFAULTS.backend,
    ),
    _option(
        "--trace",
        "append the steps of the protocol to FILE, for `python -m simulation.trace FILE`; strategy "
        "leaderless; nodes may share the file",
        type=_path,
        metavar="FILE",
    ),
)
