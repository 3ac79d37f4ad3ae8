"""Which configurations of the manifest have a second model, and how its parts are named."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from specs.manifest import Configuration
from specs.second.bookkeeper import BookKeeper
from specs.second.explorer import Model
from specs.second.prefetch import Prefetch
from specs.second.two_step_assign import TwoStepAssign
from specs.second.unclean_election import UncleanElection

Flags = Mapping[str, bool]
Factory = Callable[[Configuration, Flags], Model[Any]]

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
_FLAGS_OF_PAIRS = {
    ("WrittenBack", "One"): "one_written_back",
    ("EnoughAcks", "One"): "one_acknowledges",
}


def has_second_model(configuration: Configuration) -> bool:
    """Whether this configuration can be checked here: its protocol is written, no liveness."""
    return configuration.model in _FACTORIES and not configuration.properties


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
    return _FACTORIES[configuration.model](configuration, flags)


def _members(configuration: Configuration, name: str) -> list[str]:
    return re.findall(r"\w+", configuration.constants[name])


def _number(configuration: Configuration, name: str) -> int:
    return int(configuration.constants[name])


def _prefetch(configuration: Configuration, flags: Flags) -> Model[Any]:
    return Prefetch(
        nodes=tuple(_members(configuration, "Nodes")),
        readers=len(_members(configuration, "Readers")),
        block=_number(configuration, "Block"),
        max_blocks=_number(configuration, "MaxBlocks"),
        **flags,
    )


def _two_step_assign(configuration: Configuration, flags: Flags) -> Model[Any]:
    return TwoStepAssign(
        writers=len(_members(configuration, "Writers")),
        max_offset=_number(configuration, "MaxOffset"),
        range_last=_number(configuration, "RangeLast"),
        **flags,
    )


def _unclean_election(configuration: Configuration, flags: Flags) -> Model[Any]:
    return UncleanElection(
        replicas=len(_members(configuration, "Replicas")),
        min_in_sync=_number(configuration, "MinInSync"),
        candidates=_number(configuration, "Candidates"),
        max_epoch=_number(configuration, "MaxEpoch"),
        max_messages=_number(configuration, "MaxMessages"),
        max_crashes=_number(configuration, "MaxCrashes"),
        **flags,
    )


def _bookkeeper(configuration: Configuration, flags: Flags) -> Model[Any]:
    return BookKeeper(
        bookies=len(_members(configuration, "Bookies")),
        ensemble_size=_number(configuration, "EnsembleSize"),
        write_quorum=_number(configuration, "WriteQuorum"),
        ack_quorum=_number(configuration, "AckQuorum"),
        max_entries=_number(configuration, "MaxEntries"),
        max_changes=_number(configuration, "MaxChanges"),
        symmetric=configuration.symmetry is not None,
        **flags,
    )


_FACTORIES: Mapping[str, Factory] = {
    "Prefetch": _prefetch,
    "TwoStepAssign": _two_step_assign,
    "UncleanElection": _unclean_election,
    "BookKeeper": _bookkeeper,
}
