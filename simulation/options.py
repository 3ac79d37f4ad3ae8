"""The options of a simulated run: declared once, drawn from its seed, reduced, and written as a command.

Swarm testing [Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, ISSTA 2012]: a run with every fault and every
limit at its worst mostly tests how little still works; many runs, each without some of them, find more. Each
option has its own stream of randomness, so giving one leaves the draws of the others as they are.

A declaration says how the option is written (`Flag`), how it is drawn, and to which values a failing scenario
may be reduced (`Draw`).
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from random import Random
from typing import Any, ClassVar, NamedTuple, Self

from bench.flags import NUMBERS, Flag, declared, flags_of


@dataclass(frozen=True, slots=True)
class Draw:
    """How an option is drawn from its stream of randomness, and to what the shrinker reduces it.

    `lower`: values, the lowest first; without any, the option's default; None: it is left as it is. Of names
    some are left out: all of them, then one by one.
    """

    draw: Callable[[Random], Any]
    lower: tuple[float, ...] | None = ()


class Effort(NamedTuple):
    """How many other seeds a shrinker tries: for each step, and for the smallest scenario at the end."""

    seeds_per_step: int = 20
    seeds_at_the_end: int = 100


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


@dataclass(frozen=True, slots=True)
class AnyScenario:
    """What the scenarios of all subjects do with their options.

    `EFFORT`: of the shrinker. `WORDS`: of the command that runs a scenario.
    """

    seed: int

    EFFORT: ClassVar[Effort] = Effort()
    WORDS: ClassVar[tuple[str, ...]] = ("./maelstrom", "simulate")

    @classmethod
    def drawn(cls, stream: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options by name: those in `given`, and the others as they are drawn from their streams."""
        draws = declared(cls, Draw).items()
        drawn = {name: each.draw(Random(f"{stream}/{name}")) for name, each in draws}
        return drawn | dict(given)

    @classmethod
    def command_of(cls, seed: int, options: Mapping[str, Any]) -> str:
        """The command that runs a seed with these options."""
        words = as_words(options, flags_of(cls))
        return shlex.join([*cls.WORDS, "--seed", str(seed), *words])

    def options(self) -> dict[str, Any]:
        """All options by name, the seed first."""
        return asdict(self)

    def command(self) -> str:
        """The command that runs this scenario, with nothing left to draw."""
        options, flags = self.options(), flags_of(type(self))
        shown = {
            name: options[name]
            for name, flag in flags.items()
            if flag.kind is not NUMBERS or options[name]
        }
        return self.command_of(self.seed, shown)

    def simpler(self) -> Iterator[Self]:
        """Scenarios with one option simpler, the boldest first: fewer faults, then lower values."""
        draws = declared(type(self), Draw).items()
        reductions = {name: each.lower for name, each in draws if each.lower is not None}
        defaults = {each.name: each.default for each in fields(self) if each.default is not MISSING}
        names = [name for name in reductions if isinstance(getattr(self, name), tuple)]
        for name in dict.fromkeys([*names, *reductions]):
            value = getattr(self, name)
            for each in _simpler(value, reductions[name], defaults[name]):
                changes: dict[str, Any] = {name: each}
                yield replace(self, **changes)


def _simpler(value: Any, lower: tuple[float, ...], default: Any) -> Iterator[Any]:
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
