"""Which configurations of the manifest have a second model, and how its parts are named."""

import dataclasses
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from specs.manifest import Configuration
from specs.second.bookkeeper import BookKeeper
from specs.second.explorer import Model
from specs.second.head_log_broken import Checked, variant
from specs.second.head_log_laws import CONTENTS, Laws
from specs.second.leaderless_log import LeaderlessLog
from specs.second.prefetch import Prefetch
from specs.second.task_claiming import TaskClaiming
from specs.second.two_step_assign import TwoStepAssign
from specs.second.unclean_election import UncleanElection

# What stands in for an operator in the manifest has a flag of the same name here: `ShownAtOnce` is
# `shown_at_once`. These have names that say more.
_FLAGS = {
    "Always": "epochs_skip",
    "MayCompactRepaired": "repaired",
    "Never": "reads_do_not_fence",
    "LacOnly": "reads_from_lac",
    "NewFragments": "reads_from_new_ensemble",
    "AllAnswered": "reads_wait_for_all",
    "Itself": "lac_runs_ahead",
}
# One operator may stand in for several; there the flag depends on which it replaces.
_FLAGS_OF_PAIRS = {
    ("WrittenBack", "One"): "one_written_back",
    ("EnoughAcks", "One"): "one_acknowledges",
}
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
    known = Laws(_head_log(configuration)).of_steps()
    return {name: known[name] for name in configuration.properties}


def second_model(configuration: Configuration) -> Model[Any]:
    """The Python model with the constants and decisions of a configuration.

    Raises:
        KeyError: the protocol or a replaced operator is not written here.
    """
    if configuration.model == "HeadLog":
        return _head_log(configuration)
    made = _MODELS[configuration.model]
    fields = {field.name for field in dataclasses.fields(made)}
    flags = {_flag(*pair): True for pair in configuration.replace.items()}
    if unknown := flags.keys() - fields:
        raise KeyError(f"{configuration.title}: {', '.join(sorted(unknown))}")
    if "symmetric" in fields:
        flags["symmetric"] = configuration.symmetry is not None
    model: Model[Any] = made(**_constants(configuration, fields), **flags)
    return model


def _flag(old: str, new: str) -> str:
    """The flag that has `new` stand in for `old`."""
    return _FLAGS_OF_PAIRS.get((old, new)) or _FLAGS.get(new) or _snake(new)


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


_MODELS: Mapping[str, type[Any]] = {
    "Prefetch": Prefetch,
    "TwoStepAssign": TwoStepAssign,
    "UncleanElection": UncleanElection,
    "BookKeeper": BookKeeper,
    "LeaderlessLog": LeaderlessLog,
    "TaskClaiming": TaskClaiming,
}
