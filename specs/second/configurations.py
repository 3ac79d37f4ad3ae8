"""Which configurations of the manifest have a second model, and how its parts are named."""

import dataclasses
import re
from collections.abc import Container, Mapping
from typing import Any

from specs.manifest import Configuration
from specs.second.bookkeeper import BookKeeper
from specs.second.explorer import Model
from specs.second.leaderless_log import LeaderlessLog
from specs.second.prefetch import Prefetch
from specs.second.task_claiming import TaskClaiming
from specs.second.two_step_assign import TwoStepAssign
from specs.second.unclean_election import UncleanElection

# What stands in for an operator in the manifest, and the flag that means the same here.
_FLAGS = {
    "Prefetch": {
        "ShownAtOnce": "shown_at_once",
        "FillAfterClose": "fill_after_close",
        "BlocksTooFar": "blocks_too_far",
    },
    "TwoStepAssign": {
        "PutAlways": "put_always",
        "DeletedForGood": "deleted_for_good",
        "AppendsInTurn": "appends_in_turn",
        "CompactsInTurn": "compacts_in_turn",
        "NothingPending": "nothing_pending",
        "CursorTooFar": "cursor_too_far",
    },
    "UncleanElection": {
        "LatestOffset": "latest_offset",
        "LatestEntry": "latest_entry",
        "OwnEpoch": "own_epoch",
        "WhenTruncated": "when_truncated",
        "AnyLength": "any_length",
        "Responsive": "responsive",
        "Always": "epochs_skip",
    },
    "LeaderlessLog": {
        "MayCompactRepaired": "repaired",
        "CounterSkips": "counter_skips",
        "CounterForgetsSize": "counter_forgets_size",
        "CounterFromZero": "counter_from_zero",
        "CounterFromOne": "counter_from_one",
        "StaleCounter": "stale_counter",
        "StateIgnored": "state_ignored",
        "TornEntry": "torn_entry",
        "StillWal": "still_wal",
        "NothingDeleted": "nothing_deleted",
        "DeletedFromBeginning": "deleted_from_beginning",
        "CursorTooFar": "cursor_too_far",
        "DeleteFirst": "delete_first",
    },
    "TaskClaiming": {
        "LockIgnored": "lock_ignored",
        "StatusNotRead": "status_not_read",
        "OneFailureSuffices": "one_failure_suffices",
        "NoFailureSuffices": "no_failure_suffices",
        "ExpiresEarly": "expires_early",
        "NothingReleased": "nothing_released",
    },
    "BookKeeper": {
        "Never": "reads_do_not_fence",
        "LacOnly": "reads_from_lac",
        "NewFragments": "reads_from_new_ensemble",
        "AllAnswered": "reads_wait_for_all",
        "AnyEntry": "any_entry",
        "OneFenced": "one_fenced",
        "OneMissing": "one_missing",
        "Itself": "lac_runs_ahead",
    },
}
# One operator may stand in for several; there the flag depends on which it replaces.
_DEFINED = {
    "TwoRounds": ((1, 3), (4, 5)),
    "OneRound": ((1, 3),),
}  # what the manifest names with `<-`
_FLAGS_OF_PAIRS = {
    ("WrittenBack", "One"): "one_written_back",
    ("EnoughAcks", "One"): "one_acknowledges",
}


def has_second_model(configuration: Configuration) -> bool:
    """Whether this configuration can be checked here: its protocol is written, no liveness."""
    return configuration.model in _MODELS and not configuration.properties


def second_model(configuration: Configuration) -> Model[Any]:
    """The Python model with the constants and decisions of a configuration.

    Raises:
        KeyError: the protocol or a replaced operator is not written here.
    """
    names = _FLAGS[configuration.model]
    flags = {
        _FLAGS_OF_PAIRS.get((old, new)) or names[new]: True
        for old, new in configuration.replace.items()
    }
    made = _MODELS[configuration.model]
    fields = {field.name for field in dataclasses.fields(made)}
    if "symmetric" in fields:
        flags["symmetric"] = configuration.symmetry is not None
    model: Model[Any] = made(**_constants(configuration, fields), **flags)
    return model


def _constants(configuration: Configuration, names: Container[str]) -> dict[str, object]:
    """The constants that a model has under these names: a number, how many members a set has, or a definition.

    `MaxEntries` in the manifest is `max_entries` here.
    """
    found = {
        re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower(): text
        for name, text in configuration.constants.items()
    }
    return {name: _constant(text) for name, text in found.items() if name in names}


def _constant(text: str) -> object:
    if text.startswith("<- "):
        return _DEFINED[text.removeprefix("<- ")]
    return len(re.findall(r"\w+", text)) if text.startswith("{") else int(text)


_MODELS: Mapping[str, type[Any]] = {
    "Prefetch": Prefetch,
    "TwoStepAssign": TwoStepAssign,
    "UncleanElection": UncleanElection,
    "BookKeeper": BookKeeper,
    "LeaderlessLog": LeaderlessLog,
    "TaskClaiming": TaskClaiming,
}
