"""What settings of all kinds do with their options."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bench.flags import Flag

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


def differences(setting: "DataclassInstance") -> dict[str, Any]:
    """The options that differ from the defaults, by name."""
    default = asdict(type(setting)())
    return {name: value for name, value in asdict(setting).items() if value != default[name]}


def changed(setting: D, name: str, value: object) -> D:
    """The setting with another value of one option."""
    changes: dict[str, Any] = {name: value}
    return replace(setting, **changes)


def command_of(
    name: str, setting: "DataclassInstance", flags: Mapping[str, Flag], always: Sequence[str]
) -> str:
    """The command `name` that explores a setting: the options `always`, and those that differ."""
    words = ["./maelstrom", name]
    for option in dict.fromkeys([*always, *differences(setting)]):
        value = getattr(setting, option)
        words += [flags[option].words[0]] if value is True else [flags[option].words[0], str(value)]
    return " ".join(words)
