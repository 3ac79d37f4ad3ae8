"""Conditions of an append: the end that its key must have, and a fencing token of the key.

An append that *expects* an end gets into the log only where its key ends there. One with a *token* gets there
only while no higher token of its key is in the log, and makes its own the token of the key. A key with the
token `CLOSED` is closed: no message of it gets into the log any more, with or without a condition.

A token is a pair beside the committed offsets of an entry, under a name of its own (`token_of`). So it is
merged by maximum, is kept in runs and pages, and never falls.

Law `ConditionKept`: an attempt has only batches whose conditions hold in the view, which is the log up to the
head that it comes from. So they hold where the batch gets into the log, whoever commits it.

A view that refuses a batch refuses it for ever, so a refusal is definite, also while a peer has a copy, or an
attempt has no answer. An end never falls, nor does a token. And no batch is made that expects an end beyond the
view: only then could a copy that is refused now get into the log later. [Kleppmann 2016, How to do distributed
locking; S2, `match_seq_num`]
"""

from collections.abc import Iterable, Mapping

from leaderless.core.coordination import COUNT_END
from leaderless.core.headlog.view import TOKEN, View
from leaderless.core.messages import Append, Batch, Failure, Offsets, Reason, Send

CLOSED = COUNT_END - 1


def token_of(key: str) -> str:
    """The name of a key's token among the committed offsets of an entry."""
    return TOKEN + key


def refused_by(view: View, what: Send | Append | Batch) -> Failure | None:
    """Why something can never get into the log that a view is a prefix of; None: it may."""
    appended, expected, commits = _parts(what)
    for key in appended:
        if view.tokens.get(token_of(key)) == CLOSED:
            text = f"key {key!r} is closed, and ends at offset {view.end(key)}"
            return Failure(Reason.CLOSED, text, view.end(key))
    for key, end in expected.items():
        here = view.end(key)
        # Of what is in no batch there is no copy that could get into the log later.
        if here > end or (here < end and not isinstance(what, Batch)):
            text = f"key {key!r} ends at offset {here}, not at {end}"
            return Failure(Reason.CONFLICT, text, here)
    for name, number in commits.items():
        if (known := view.tokens.get(name, -1)) > number:
            text = f"key {name[1:]!r} has the token {known}, which is above {number}"
            return Failure(Reason.STALE_TOKEN, text, known)
    return None


def is_beyond(view: View, batch: Batch) -> bool:
    """Whether a batch of a peer expects more of the log than a view has."""
    return any(view.end(key) < end for key, end in batch.expected.items())


class Along:
    """What goes into the log together, as far as conditions ask."""

    def __init__(self, taken: Iterable[Send | Append | Batch]) -> None:
        self._keys: set[str] = set()
        self._tokens: Offsets = {}
        for each in taken:
            self._add(each)

    def takes(self, what: Send | Append | Batch) -> bool:
        """Take something along, unless the rest would break its condition, or it one of theirs."""
        appended, expected, commits = _parts(what)
        tokens = self._tokens
        is_closed = any(tokens.get(token_of(key)) == CLOSED for key in appended)
        if is_closed or not self._keys.isdisjoint(expected):
            return False
        if any(tokens.get(name, number) != number for name, number in commits.items()):
            return False
        self._add(what)
        return True

    def _add(self, what: Send | Append | Batch) -> None:
        appended, _, commits = _parts(what)
        self._keys.update(appended)
        self._tokens |= {name: n for name, n in commits.items() if name.startswith(TOKEN)}


def _parts(what: Send | Append | Batch) -> tuple[Iterable[str], Offsets, Mapping[str, int]]:
    """The keys that it appends to, the ends that it expects, and the pairs that ride along."""
    if isinstance(what, Send):
        return [what.key], {}, {}
    return what.appends, what.expected, what.commits
