"""Starts a node: settings, logging, session, loop."""

import gc
import logging
import secrets
import sys
from collections.abc import Sequence
from functools import partial

import anyio

from leaderless.core.machine import Machine
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, untraced
from leaderless.runtime.session import Session
from leaderless.runtime.settings import Settings, parse
from leaderless.runtime.stdio import serve
from leaderless.runtime.trace_file import trace_to

log = logging.getLogger("leaderless")

INTERRUPTED = 130
UNUSABLE = 2
CALL_BITS = 52  # call numbers are integers to every reader of JSON up to 53 bits


def main(arguments: Sequence[str] | None = None, program: str = "run.sh") -> int:
    """Run a node until its stdin ends; returns the exit status. Its help calls it `program`."""
    settings = parse(sys.argv[1:] if arguments is None else arguments, program)
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
    )
    if sys.stdin is None or sys.stdout is None:  # their numbers would go to the next file opened
        log.error("stdin or stdout is closed; a node speaks through both")
        return UNUSABLE
    session = Session(partial(_machine, settings), incarnation=secrets.token_urlsafe(6))
    gc.freeze()  # what was imported lives as long as the node
    gc.set_threshold(20_000, 20, 50)
    try:
        anyio.run(serve, session, backend=settings.backend)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _machine(settings: Settings, identity: Identity) -> Machine:
    clock = Clock()
    trace = trace_to(settings.trace, identity) if settings.trace else untraced
    strategy = STRATEGIES[settings.strategy](Context(identity, clock, settings.options, trace))
    return Machine(
        strategy, settings.store_timeout_s, clock, calls_from=secrets.randbits(CALL_BITS)
    )
