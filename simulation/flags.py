"""The options of `simulate` on the command line: none of them has a default, for they are drawn."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from bench.flags import LATENCIES
from bench.nemesis.partition import SHAPES
from bench.nemesis.targets import TARGET_WORDS
from leaderless.core.strategies import STRATEGIES
from runs.faults.names import FAULTS
from simulation.scenario import Scenario

_COUNT = click.IntRange(min=1)
_NOT_NEGATIVE = click.FloatRange(min=0)
_POSITIVE = click.FloatRange(min=0, min_open=True)


class Names(click.ParamType):  # type: ignore[type-arg]  # generic in the newest click only
    """A comma-separated list of `known` names, or none, or all."""

    name = "names"

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        if value == "all" and "all" not in self._known:
            return tuple(self._known)
        names = [
            name
            for name in re.split(r"\s*,\s*", value.strip())
            if name not in {"", "none"} - set(self._known)
        ]
        if unknown := sorted(set(names) - set(self._known)):
            known = f"{', '.join(self._known)}, or none, or all"
            self.fail(f"{', '.join(unknown)}: must be of {known}.", param, ctx)
        return tuple(name for name in self._known if name in names)


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers and ranges: 3,5-9."""

    name = "numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if not re.fullmatch(r"(\d+(-\d+)?(,|$))*", value):
            self.fail("must be numbers and ranges, such as 3,5-9.", param, ctx)
        numbers: set[int] = set()
        for part in filter(None, value.split(",")):
            first, _, last = part.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
        return tuple(sorted(numbers))


def _ranges(numbers: tuple[int, ...]) -> str:
    """Sorted numbers as `Numbers` reads them."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


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
    "nemesis": ("--nemesis", Names(FAULTS), f"Of {', '.join(FAULTS)}; or none, or all."),
    "nemesis_interval_s": ("--nemesis-interval", _POSITIVE, "Mean seconds between faults."),
    "nemesis_targets": ("--nemesis-targets", click.Choice(TARGET_WORDS), "Which nodes it takes."),
    "partition_shapes": ("--partition-shapes", Names(tuple(SHAPES)), f"Of {', '.join(SHAPES)}."),
    "freshness_ms": ("--freshness", _NOT_NEGATIVE, "The node's option, in ms."),
    "combine": ("--combine/--no-combine", bool, "The node's option."),
    "lanes": ("--lanes", _COUNT, "Batches that a node has under way at most."),
    "memory_kib": ("--memory-kib", _COUNT, "Log that a node keeps in memory."),
    "store_timeout_ms": ("--store-timeout-ms", _POSITIVE, "The node's option."),
    "seal_entries": ("--seal-entries", _COUNT, "Entries of a full tail."),
    "seal_bytes": ("--seal-bytes", _COUNT, "Bytes of a full tail."),
    "segments_per_run": ("--segments-per-run", _COUNT, "Segments that are compacted together."),
    "omit": ("--omit", Numbers(), "Leave out operations by number: 3,5-9."),
    "omit_faults": ("--omit-faults", Numbers(), "Leave out acts of faults by number."),
    "strict": ("--strict/--no-strict", bool, "Every node must serve everything. On by default."),
}


def scenario_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command with the options of a scenario; those not given are None."""
    for name, (flag, kind, text) in reversed(FLAGS.items()):
        command = click.option(flag, name, type=kind, default=None, help=text or None)(command)
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
    shown = {name: options[name] for name in FLAGS if not name.startswith("omit") or options[name]}
    return command_of(scenario.seed, shown)


def as_flags(options: Mapping[str, Any]) -> list[str]:
    """Options as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        flag = FLAGS[name][0]
        if isinstance(value, bool):
            yes, _, no = flag.partition("/")
            words.append(yes if value else no)
        elif name.startswith("omit"):
            words += [flag, _ranges(value)]
        elif isinstance(value, tuple):
            words += [flag, ",".join(value) or "none"]
        else:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return words
