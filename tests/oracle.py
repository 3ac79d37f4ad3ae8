"""What clients of a log may see, said naively; `judge` returns one sentence for each breach.

Every message of a history must be unique. Operations that were answered with an indefinite error, or never,
may or may not have happened; those with a definite error must not have.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from leaderless.wire.errors import ErrorCode

Body = dict[str, Any]
NEVER = float("inf")


class Operation(NamedTuple):
    """A request and its reply; `invoked` and `replied` are places in the order of everything seen."""

    invoked: int
    request: Body
    replied: float = NEVER
    reply: Body | None = None

    @property
    def happened(self) -> bool:
        """Whether the client was told that it happened."""
        return self.reply is not None and self.reply["type"] != "error"

    @property
    def refused(self) -> bool:
        """Whether the client was told that it did not happen and never will."""
        return (
            self.reply is not None
            and self.reply["type"] == "error"
            and ErrorCode(self.reply["code"]).definite
        )


def judge(
    operations: list[Operation], *, commits_may_lag: bool = False, sparse: bool = False
) -> list[str]:
    """The breaches of a linearizable log with committed offsets in a history.

    `commits_may_lag`: an acknowledged commit may be unseen elsewhere or lost in a crash, which only means
    that messages are delivered again; one that nobody asked for stays a breach. `sparse`: offsets may have
    holes between them.
    """
    sends, polls, commits, lists = (
        [operation for operation in operations if operation.request["type"] == kind]
        for kind in ("send", "poll", "commit_offsets", "list_committed_offsets")
    )
    return list(
        chain(
            _one_place_each(sends, polls),
            _nothing_skipped(sends, polls) if sparse else _contiguous(polls),
            _fresh(sends, polls),
            _nothing_refused(sends, polls),
            _committed_not_ahead(commits, lists),
            () if commits_may_lag else _committed_not_behind(commits, lists),
        )
    )


def _read(polls: list[Operation]) -> Iterator[tuple[str, int, Any]]:
    for poll in polls:
        if poll.happened:
            for key, pairs in poll.reply["msgs"].items():
                yield from ((key, offset, msg) for offset, msg in pairs)


def _one_place_each(sends: list[Operation], polls: list[Operation]) -> Iterator[str]:
    places, holders = defaultdict(set), defaultdict(set)
    acknowledged = (
        (send.request["key"], send.reply["offset"], send.request["msg"])
        for send in sends
        if send.happened
    )
    sent = {(send.request["key"], send.request["msg"]) for send in sends}
    for key, offset, msg in chain(acknowledged, _read(polls)):
        places[key, msg].add(offset)
        holders[key, offset].add(msg)
        if (key, msg) not in sent:
            yield f"{msg} was read from {key} but never sent there"
    for (key, msg), offsets in places.items():
        if len(offsets) > 1:
            yield f"{msg} is in {key} at {sorted(offsets)}"
    for (key, offset), msgs in holders.items():
        if len(msgs) > 1:
            yield f"offset {offset} of {key} holds {sorted(msgs)}"


def _contiguous(polls: list[Operation]) -> Iterator[str]:
    for poll in polls:
        for key, pairs in poll.reply["msgs"].items() if poll.happened else ():
            start = poll.request["offsets"][key]
            offsets = [offset for offset, _ in pairs]
            if offsets != list(range(start, start + len(pairs))) or not pairs:
                yield f"a poll of {key} from {start} answered {offsets}"


def _nothing_skipped(sends: list[Operation], polls: list[Operation]) -> Iterator[str]:
    """No message ever appears at an offset that a poll has gone past, or between two that it answered."""
    exist = defaultdict(set)
    for key, offset, _ in _read(polls):
        exist[key].add(offset)
    for send in sends:
        if send.happened:
            exist[send.request["key"]].add(send.reply["offset"])
    for poll in polls:
        for key, pairs in poll.reply["msgs"].items() if poll.happened else ():
            start, offsets = poll.request["offsets"][key], [offset for offset, _ in pairs]
            expected = [o for o in sorted(exist[key]) if start <= o <= max(offsets, default=-1)]
            if offsets != expected or not offsets:
                yield f"a poll of {key} from {start} answered {offsets} but {expected} exist"


def _fresh(sends: list[Operation], polls: list[Operation]) -> Iterator[str]:
    for poll in polls:
        for send in sends:
            if poll.happened and send.happened and send.replied < poll.invoked:
                key, offset = send.request["key"], send.reply["offset"]
                start = poll.request["offsets"].get(key, NEVER)
                if start <= offset and [offset, send.request["msg"]] not in poll.reply["msgs"].get(
                    key, []
                ):
                    yield f"offset {offset} of {key} was acknowledged but not polled from {start}"


def _nothing_refused(sends: list[Operation], polls: list[Operation]) -> Iterator[str]:
    refused = {(send.request["key"], send.request["msg"]) for send in sends if send.refused}
    for key, offset, msg in _read(polls):
        if (key, msg) in refused:
            yield f"{msg} was refused but is in {key} at {offset}"


def _committed_not_ahead(commits: list[Operation], lists: list[Operation]) -> Iterator[str]:
    for seen, key, offset in _listed(lists):
        asked = [
            commit.request["offsets"].get(key, -1)
            for commit in commits
            if commit.invoked < seen.replied
        ]
        if offset > max(asked, default=-1):
            yield f"{key} is committed up to {offset}, more than anybody asked for"


def _committed_not_behind(commits: list[Operation], lists: list[Operation]) -> Iterator[str]:
    known = [
        (commit.replied, key, offset)
        for commit in commits
        if commit.happened
        for key, offset in commit.request["offsets"].items()
    ] + [(seen.replied, key, offset) for seen, key, offset in _listed(lists)]
    for seen in lists:
        for replied, key, offset in known:
            if seen.happened and replied < seen.invoked and key in seen.request["keys"]:
                listed = seen.reply["offsets"].get(key, -1)
                if listed < offset:
                    yield f"{key} was committed up to {offset}, later up to {listed}"


def _listed(lists: list[Operation]) -> Iterator[tuple[Operation, str, int]]:
    for seen in lists:
        if seen.happened:
            yield from ((seen, key, offset) for key, offset in seen.reply["offsets"].items())
