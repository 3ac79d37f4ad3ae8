"""How an option is declared, and the command line that follows from the declarations.

An option is a field of a record (`bench.options.TestOptions`, `simulation.scenario.Scenario`). The field
gives its name, type and default; a `Flag` beside the type gives the rest:

    rate: Annotated[float, Flag("Operations per second, about.", NOT_NEGATIVE)] = 5.0

A name may end with its unit (`time_limit_s`). The word on the command line leaves the unit out
(`--time-limit`), and the help shows it instead of the type (`--time-limit SECONDS`).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints

import click


class _Number(click.ParamType[Any]):
    """As click's, but what is no number gets a suggestion: a unit stands in the name of the option alone."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_whole = isinstance(self, click.IntRange)
        try:
            (int if is_whole else float)(value)
        except ValueError:
            unit = (param.metavar or "").lower() if param else ""
            found = unit and re.fullmatch(rf"(\d+)\s*{unit.removesuffix('econds')}\w*", value)
            near = f" Did you mean {found[1]}?" if found else ""
            told = f"{'a whole number' if is_whole else 'a number'}{', in ' * bool(unit)}{unit}"
            raise click.BadParameter(f"{value!r}: must be {told}.{near}", ctx, param) from None
        return super().convert(value, param, ctx)


class Whole(_Number, click.IntRange):
    """A whole number in a range."""


class Real(_Number, click.FloatRange):
    """A number in a range."""


COUNT, NATURAL = Whole(min=1), Whole(min=0)
NOT_NEGATIVE, POSITIVE = Real(min=0), Real(min=0, min_open=True)
_UNITS = {"s": "seconds", "ms": "ms", "us": "microseconds", "kib": "KiB", "mib": "MiB"}
_KINDS: dict[Any, click.ParamType[Any]] = {bool: click.BOOL, int: click.INT, float: click.FLOAT}
Command = Callable[..., Any]
Declaration = TypeVar("Declaration")
_NEAR_MAX, _LIKE = 5, 0.7  # suggestions, and how much alike: 1 is the same
_SHOWN_MAX = 8  # choices beside the name of an option; the help has more


@dataclass(frozen=True, slots=True)
class Flag:
    """What a declaration adds to the field's name, type and default.

    `kind` checks a value and says what is wrong with it; without one the field's type does. `default` is for
    the command line, where it differs from the field's. `ours`: the real tool does not have this flag.
    `axis` is its name in a sweep, where it has a shorter one; `unswept` says what to write instead, where a
    sweep cannot vary it.
    """

    help: str = ""
    kind: click.ParamType[Any] | None = None
    words: tuple[str, ...] = ()
    default: Any = None
    ours: bool = False
    required: bool = False
    multiple: bool = False
    hidden: bool = False
    axis: str = ""
    unswept: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether it stands alone on the command line, without a value."""
        return self.kind is click.BOOL


def declared(record: type, what: type[Declaration]) -> dict[str, Declaration]:
    """What stands beside the types of a record's fields, by field; `what` says which of it."""
    return {
        name: each
        for name, hint in get_type_hints(record, include_extras=True).items()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(each, what)
    }


def flags_of(record: type) -> dict[str, Flag]:
    """The flags of a record by field, each with all its words and its kind."""
    types = get_type_hints(record)
    return {
        name: replace(
            with_words(name, flag), kind=flag.kind or _KINDS.get(types[name], click.STRING)
        )
        for name, flag in declared(record, Flag).items()
    }


def unit_of(name: str) -> str | None:
    """The unit with which an option's name ends."""
    return _UNITS.get(name.rpartition("_")[2])


def with_words(name: str, flag: Flag) -> Flag:
    """The declaration with its words: its own, or one made of the option's name."""
    stem = name.rpartition("_")[0] if unit_of(name) else name
    word = f"--{stem.replace('_', '-')}"
    return flag if flag.words else replace(flag, words=(word,))


def click_options(flags: Mapping[str, Flag], defaults: Mapping[str, Any]) -> Callable[..., Command]:
    """Decorate a click command with these options, each under its name in `flags`."""

    def decorate(command: Command) -> Command:
        for name, flag in reversed(list(flags.items())):
            default = defaults.get(name) if flag.default is None else flag.default
            command = _click_option(name, flag, default)(command)
        return command

    return decorate


def optional_click_options(flags: Mapping[str, Flag]) -> Callable[..., Command]:
    """As `click_options`, but an option that is not given is None, and a switch can be turned off."""
    negatable = {
        name: replace(
            flag,
            words=tuple(
                f"{word}/--no-{word[2:]}" if flag.is_switch else word for word in flag.words
            ),
            default=None,
        )
        for name, flag in flags.items()
    }
    return click_options(negatable, {})


def _click_option(name: str, flag: Flag, default: Any) -> Callable[[Command], Command]:
    unit = unit_of(name)
    given: dict[str, Any] = {"metavar": unit.upper()} if unit else {}
    if not flag.required:  # click takes any default, even None, for a value
        given["default"] = default
    return click.option(
        *flag.words,
        name,
        type=flag.kind,
        is_flag=flag.is_switch,
        required=flag.required,
        multiple=flag.multiple,
        hidden=flag.hidden,
        show_default=not flag.is_switch and default not in (None, ()),
        show_choices=len(getattr(flag.kind, "choices", ())) <= _SHOWN_MAX,
        help=f"{flag.help} (ours)".strip() if flag.ours else flag.help or None,
        **given,
    )


@dataclass(eq=False)
class Parsed(click.ParamType[Any]):
    """The type of an option whose text a function reads; the `ValueError` of the function is the error."""

    name: str
    parse: Callable[[str], Any]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def split(text: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas, each once, in the order of the text.

    Raises `ValueError` for a comma without a name at either side.
    """
    names = re.split(r"\s*,\s*", text.strip())
    if any(names) and not all(names):
        raise ValueError(f"{text}: a name is missing beside a comma.")
    return tuple(dict.fromkeys(filter(None, names)))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question to end a message with: those that `word` begins, or begins a part of, or the one most like it.

    Nothing where none is like it. In a mapping, `word` is looked for in what the known ones stand for.
    """
    texts = known if isinstance(known, Mapping) else {each: each for each in known}
    begins = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    near = [each for each, text in texts.items() if word and begins.search(text)]
    if not 0 < len(near) <= _NEAR_MAX:
        near = get_close_matches(word, [*texts], n=1, cutoff=_LIKE)
    *others, last = near or [""]
    return f" Did you mean {', '.join(others)}{' or ' * bool(others)}{last}?" if near else ""


class OneOf(click.Choice[Any]):
    """As click's, but a mistyped word gets a suggestion (`did_you_mean`)."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__([*known])
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            near = did_you_mean(str(value), self._known)
            return self.fail(
                f"{value!r}: must be one of {', '.join(self.choices)}.{near}", param, ctx
            )


def names_of(known: Sequence[str], *, some: bool = False) -> Parsed:
    """A type: names out of `known`, with commas between them; `all`; and `none`, unless `some` must be there.

    `all` and `none` mean themselves where they are among the known names.
    """
    words: dict[str, tuple[str, ...]] = {"all": tuple(known)} | ({} if some else {"none": ()})
    words = {word: names for word, names in words.items() if word not in known}

    def parse(text: str) -> tuple[str, ...]:
        names = words.get(text.strip(), split(text))
        if unknown := sorted(set(names) - set(known)):
            others = f", or {' or '.join(words)}" if words else ""
            near = did_you_mean(unknown[0], known)
            raise ValueError(
                f"{', '.join(unknown)}: must be one of {', '.join(known)}{others}.{near}"
            )
        if some and not names:
            raise ValueError(f"name at least one of {', '.join(known)}.")
        return names

    return Parsed("names", parse)


def _numbers(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(\d+(-\d+)?(,|$))*", text):
        raise ValueError("must be numbers and ranges, such as 3,5-9.")
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


NUMBERS = Parsed("numbers", _numbers)  # 3,5-9 as a sorted tuple
