"""The options of a simulated run: declared once, drawn from its seed, reduced, and written as a command.

Swarm testing [Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, ISSTA 2012]: a run with every fault and every
limit at its worst mostly tests how little still works; many runs, each without some of them, find more. Each
option has its own stream of randomness, so giving one leaves the draws of the others as they are.

A declaration says how the option is written (`Flag`), how it is drawn, and to which values a failing scenario
may be reduced (`Draw`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.flags import NUMBERS, Flag


@dataclass(frozen=True, slots=True)
class Draw:
    """How an option is drawn from its stream of randomness, and to what the shrinker reduces it.

    `lower`: values, the lowest first; without any, the option's default; None: it is left as it is. Of names
    some are left out: all of them, then one by one.
    """

    draw: Callable[[Random], Any]
    lower: tuple[float, ...] | None = ()


def one_of(*values: Any, lower: tuple[float, ...] | None = ()) -> Draw:
    """Each value with the same odds."""
    return Draw(lambda random: random.choice(values), lower)


def chance(odds: float) -> Draw:
    """True with these odds."""
    return Draw(lambda random: random.random() < odds)


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
