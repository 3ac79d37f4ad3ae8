"""Which configurations of the manifest have a second model, and how its parts are named."""

import dataclasses
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from specs.manifest import Configuration
from specs.second.explorer import Model
from specs.second.head_log_checked import CONTENTS, Checked, variant
from specs.second.leaderless_log import LeaderlessLog
from specs.second.task_claiming import TaskClaiming

# What the manifest names with `<-`.
_DEFINED = {**CONTENTS, "TwoRounds": ((1, 3), (4, 5)), "OneRound": ((1, 3),)}


def has_second_model(configuration: Configuration) -> bool:
    """Whether this configuration can be checked here: its protocol is written, no liveness."""
    if configuration.model == "HeadLog":
        return configuration.specification != "FairSpec"
    return configuration.model in _MODELS and not configuration.properties


def step_laws(configuration: Configuration) -> Mapping[str, Callable[[Any, Any], bool]]:
    """The laws of steps that a configuration checks; only HeadLog has any."""
    if not configuration.properties:
        return {}
    known = _head_log(configuration).step_laws()
    return {name: known[name] for name in configuration.properties}


def second_model(configuration: Configuration) -> Model[Any]:
    """The Python model with the constants and decisions of a configuration.

    Raises:
        KeyError, TypeError: the protocol or a replaced operator is not written here.
    """
    if configuration.model == "HeadLog":
        return _head_log(configuration)
    made = _MODELS[configuration.model]
    fields = {field.name for field in dataclasses.fields(made)}
    # What stands in for an operator in the manifest has a flag of the same name: `TornEntry` is `torn_entry`.
    flags = {_snake(new): True for new in configuration.replace.values()}
    if "symmetric" in fields:
        flags["symmetric"] = configuration.symmetry is not None
    model: Model[Any] = made(**_constants(configuration, fields), **flags)
    return model


def _snake(name: str) -> str:
    """`MaxEntries` in the manifest is `max_entries` here."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def _head_log(configuration: Configuration) -> Checked:
    made = variant(configuration.replace, configuration.specification)
    names = {field.name for field in dataclasses.fields(made)}
    symmetric = configuration.symmetry == "NodeSymmetry"
    return made(**_constants(configuration, names), symmetric=symmetric)


def _constants(configuration: Configuration, names: Container[str]) -> dict[str, Any]:
    """The constants that a model has under these names: a number, the size of a set, or a definition."""
    found = {_snake(name): text for name, text in configuration.constants.items()}
    return {name: _constant(text) for name, text in found.items() if name in names}


def _constant(text: str) -> object:
    if text.startswith("<- "):
        return _DEFINED[text.removeprefix("<- ")]
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    return len(re.findall(r"\w+", text)) if text.startswith("{") else int(text)


_MODELS: Mapping[str, type[Any]] = {"LeaderlessLog": LeaderlessLog, "TaskClaiming": TaskClaiming}
