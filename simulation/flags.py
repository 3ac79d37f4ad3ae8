"""The options of `simulate` on the command line: none of them has a default, for they are drawn."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import click

from bench.flags import LATENCIES
from bench.nemesis import FAULTS
from leaderless.core.strategies import STRATEGIES
from simulation.scenario import Scenario

_COUNT = click.IntRange(min=1)
_NOT_NEGATIVE = click.FloatRange(min=0)
_POSITIVE = click.FloatRange(min=0, min_open=True)


def _faults(
    _context: click.Context, _flag: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    if text in (None, "all"):
        return FAULTS if text else None
    assert text is not None
    names = [name for name in re.split(r"\s*,\s*", text.strip()) if name not in ("", "none")]
    if unknown := sorted(set(names) - set(FAULTS)):
        known = f"{', '.join(FAULTS)}, or none, or all"
        raise click.BadParameter(f"{', '.join(unknown)}: must be one of {known}.")
    return tuple(fault for fault in FAULTS if fault in names)


# Field of `Scenario` -> its flag, type and help.
FLAGS: dict[str, tuple[str, Any, str]] = {
    "strategy": ("--strategy", click.Choice(sorted(STRATEGIES)), "How the nodes keep the log."),
    "nodes": ("--nodes", _COUNT, "How many nodes: n0, n1, ..."),
    "clients": ("--clients", _COUNT, "How many clients each node has."),
    "rate": ("--rate", _POSITIVE, "Operations per second, about."),
    "time_limit_s": ("--time-limit", _POSITIVE, "Virtual seconds of the main phase."),
    "recovery_time_s": (
        "--recovery-time",
        _POSITIVE,
        "Seconds from the last fault to final polls.",
    ),
    "latency_ms": ("--latency", click.IntRange(min=0), "Mean latency of a message, in ms."),
    "latency_dist": ("--latency-dist", click.Choice(LATENCIES), ""),
    "think_us": ("--think-time", _COUNT, "Mean time a node takes for a line, in µs."),
    "think_dist": ("--think-dist", click.Choice(LATENCIES), ""),
    "key_count": ("--key-count", _COUNT, "How many keys at a time."),
    "max_writes_per_key": ("--max-writes-per-key", _COUNT, ""),
    "nemesis": ("--nemesis", str, f"Of {', '.join(FAULTS)}; or none, or all."),
    "nemesis_interval_s": ("--nemesis-interval", _POSITIVE, "Mean seconds between faults."),
    "freshness_ms": ("--freshness", _NOT_NEGATIVE, "The node's option, in ms."),
    "combine": ("--combine/--no-combine", bool, "The node's option."),
    "lanes": ("--lanes", _COUNT, "Batches that a node has under way at most."),
    "memory_kib": ("--memory-kib", _COUNT, "Log that a node keeps in memory."),
    "store_timeout_ms": ("--store-timeout-ms", _POSITIVE, "The node's option."),
    "seal_entries": ("--seal-entries", _COUNT, "Entries of a full tail."),
    "seal_bytes": ("--seal-bytes", _COUNT, "Bytes of a full tail."),
    "segments_per_run": ("--segments-per-run", _COUNT, "Segments that are compacted together."),
    "strict": ("--strict/--no-strict", bool, "Every node must serve everything. On by default."),
}


def scenario_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command with the options of a scenario; those not given are None."""
    for name, (flag, kind, text) in reversed(FLAGS.items()):
        check = _faults if name == "nemesis" else None
        option = click.option(
            flag, name, type=kind, default=None, help=text or None, callback=check
        )
        command = option(command)
    return command


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a scenario that were given."""
    return {name: flags[name] for name in FLAGS if flags[name] is not None}


def command_of(seed: int, options: Mapping[str, Any]) -> str:
    """The command that runs this seed with these options."""
    return shlex.join(["./maelstrom", "simulate", "--seed", str(seed), *as_flags(options)])


def whole_command_of(scenario: Scenario) -> str:
    """The command that runs a scenario, nothing in it left to draw."""
    options = scenario.options()
    return command_of(scenario.seed, {name: options[name] for name in FLAGS})


def as_flags(options: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        flag = FLAGS[name][0]
        if isinstance(value, bool):
            yes, _, no = flag.partition("/")
            words.append(yes if value else no)
        elif isinstance(value, tuple):
            words += [flag, ",".join(value) or "none"]
        else:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return words
