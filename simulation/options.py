"""The options of a simulated run: declared once, drawn from its seed, reduced, and written as a command.

Swarm testing [Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, ISSTA 2012]: a run with every fault and every
limit at its worst mostly tests how little still works; many runs, each without some of them, find more. Each
option has its own stream of randomness, so giving one leaves the draws of the others as they are.

A declaration says how the option is written (`Flag`), how it is drawn, and to which values a failing scenario
may be reduced (`Draw`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import click

from bench import options as bench_options
from bench.flags import NUMBERS, Flag


class Named(click.Choice[str]):
    """A choice whose names stand in the help text, for they are wider than a terminal."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "LOG"


def of_bench(name: str, kind: click.ParamType[Any] | None = None) -> Flag:
    """The bench's declaration of an option; `kind` where a scenario allows fewer or more values."""
    flag = bench_options.FLAGS[name]
    return replace(flag, kind=kind or flag.kind, ours=False)


@dataclass(frozen=True, slots=True)
class Draw:
    """How an option is drawn from its stream of randomness, and to what the shrinker reduces it.

    `lower`: values, the lowest first; without any, the option's default; None: it is left as it is. Of names
    some are left out: all of them, then one by one. `of`: the runs that have the option, if not all do.
    `lives`: in a mixed run each life of a node draws it for itself; `bound` is the value that promises least.
    `calm`: what each value becomes beside a bucket.
    """

    draw: Callable[[Random], Any]
    lower: tuple[float, ...] | None = ()
    of: str = ""
    lives: bool = False
    bound: float | None = None
    calm: Mapping[float, float] = field(default_factory=dict)


def one_of(*values: Any, lower: tuple[float, ...] | None = (), **more: Any) -> Draw:
    """Each value with the same odds; `more`: see `Draw`."""
    return Draw(lambda random: random.choice(values), lower, **more)


def chance(odds: float, **more: Any) -> Draw:
    """True with these odds; `more`: see `Draw`."""
    return Draw(lambda random: random.random() < odds, **more)


def some_of(names: Sequence[str], *, none: float, each: float) -> Draw:
    """Some names: `none` of them in that share of the runs, and otherwise each with odds of its own."""

    def draw(random: Random) -> tuple[str, ...]:
        if random.random() < none:
            return ()
        return tuple(name for name in names if random.random() < each)

    return Draw(draw)


def simpler(value: Any, lower: tuple[float, ...], default: Any) -> Iterator[Any]:
    """To what a value may be reduced, the boldest first; `lower`: see `Draw`."""
    if isinstance(value, tuple):
        if len(value) > 1:
            yield ()
        yield from (tuple(each for each in value if each != one) for one in value)
    elif lower:
        yield from (type(value)(each) for each in lower if each < value)
    elif value != default:
        yield default


def as_words(options: Mapping[str, Any], flags: Mapping[str, Flag]) -> list[str]:
    """Options as words of a command line; `flags` declares them."""
    words: list[str] = []
    for name, value in options.items():
        flag = flags[name].words[-1]
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        elif flags[name].kind is NUMBERS:
            words += [flag, _ranges(value)]
        elif isinstance(value, tuple):
            words += [flag, ",".join(value) or "none"]
        else:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return words


def _ranges(numbers: tuple[int, ...]) -> str:
    """Sorted numbers as `NUMBERS` reads them."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
