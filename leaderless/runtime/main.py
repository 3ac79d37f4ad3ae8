"""Starts a node: settings, logging, session, loop."""

import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio

from leaderless.core.machine import Machine
from leaderless.core.scheduler import Scheduler
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity
from leaderless.core.timeouts import StoreTimeouts
from leaderless.runtime.session import Session
from leaderless.runtime.settings import Settings
from leaderless.runtime.stdio import process_age_s, serve

if TYPE_CHECKING:  # only a node on a real store needs it
    from leaderless.hosting.host import Host
    from leaderless.runtime.kept_log import Look

log: logging.Logger = logging.getLogger("leaderless")

INTERRUPTED = 130
UNUSABLE = 2
CALL_BITS = 52  # call numbers are integers to every reader of JSON up to 53 bits


def main(arguments: Sequence[str] | None = None, program: str = "run.sh") -> int:
    """Run a node until its stdin ends; returns the exit status. Its help calls it `program`.

    Without options, as a bench starts a node, no parser is made: that would be a tenth of the start.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        return run(Settings())
    from leaderless.runtime.command_line import parse_options

    return run(parse_options(given, program))


def run(settings: Settings) -> int:
    """Run a node of these settings until its stdin ends; returns the exit status."""
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
    )
    if sys.stdin is None or sys.stdout is None:  # their numbers would go to the next file opened
        log.error("stdin or stdout is closed; a node speaks through both")
        return UNUSABLE
    gc.freeze()  # what was imported lives as long as the node
    gc.set_threshold(20_000, 20, 50)
    gc.enable()  # see `runtime.lean`
    try:
        return anyio.run(_serve, settings, backend=settings.backend)
    except KeyboardInterrupt:
        return INTERRUPTED


async def _serve(settings: Settings) -> int:
    """Serve on stdin and stdout; returns the exit status."""
    place, alive_s = settings.place, process_age_s()
    # This is asyncio's clock. To ask anyio costs twenty times as much: it finds out which loop runs.
    clock = time.monotonic if settings.backend == "asyncio" else anyio.current_time
    if place is None:
        session = Session(
            partial(_machine, settings), _incarnation(), limits=settings.options.limits
        )
        await serve(session, alive_s=alive_s, clock=clock)
        return 0
    from leaderless.runtime.on_store import serve_on_store
    from leaderless.store.port import Refused
    from leaderless.store.urls import open_store

    try:
        store = open_store(place.url, place.options)
    except Refused as refused:
        log.error("--store: %s", refused)
        return UNUSABLE
    shape = (settings.options.shape or Shape()).for_registers(store.value_bytes_max)
    fitted = settings.on_log(shape)
    await serve_on_store(
        partial(session_on, fitted), store, alive_s=alive_s, clock=clock, settings=fitted
    )
    return 0


def session_on(settings: Settings, look: "Look", hosted: "Callable[[Machine], Host]") -> Session:
    """A session on a store, as `leaderless.runtime.on_store` wants it."""

    def start(identity: Identity) -> "Host":
        return hosted(_machine(settings.on_log(look.shape) if look.shape else settings, identity))

    return Session(start, _incarnation(), limits=settings.options.limits, look=look)


def _incarnation() -> str:
    """A text that no two starts of a node share."""
    return os.urandom(6).hex()


def _machine(settings: Settings, identity: Identity) -> Machine:
    clock = Clock(time.time if settings.place else None)
    options, make = settings.options, STRATEGIES[settings.strategy]
    calls_from = int.from_bytes(os.urandom(7)) >> (56 - CALL_BITS)
    scheduler = Scheduler(StoreTimeouts(options.pace), calls_from)
    if settings.trace is None:
        return Machine(make(Context(identity, clock, options)), options.limits, clock, scheduler)
    from leaderless.runtime.trace_file import TracedMachine, TraceFile

    trace = TraceFile(settings.trace, identity.node)
    strategy = make(Context(identity, clock, options, trace))
    return TracedMachine(trace, strategy, options.limits, clock, scheduler)
