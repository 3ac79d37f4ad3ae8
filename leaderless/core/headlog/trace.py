"""The steps of the protocol as the model in `specs/HeadLog` names them, so that it can judge a real run.

`docs/evidence/refinement.md` has the table of steps and fields. Modules call
`replica.trace("Step", fields, ...)` where a step is done; the functions here make its fields.
"""

from leaderless.core.headlog.index import Index
from leaderless.core.headlog.records import Head, Segment
from leaderless.core.messages import Batch, Entry, Fields, Pairs


def sent(batch: Batch) -> Fields:
    """Of Send, and of Named: a program appends a batch of a name that its caller chose."""
    appends = {key: len(msgs) for key, msgs in batch.appends.items()}
    return {
        **{**named(batch), "epoch": batch.epoch, "appends": appends},
        **{"commits": batch.commits, "expected": batch.expected},
    }


def named(batch: Batch) -> Fields:
    """Of Reject and Abandon: the batch."""
    return {"id": [batch.writer, batch.seq]}


def handed(batch: Batch, peer: str) -> Fields:
    """Of HandOver."""
    return {**named(batch), "to": peer}


def placed(batch: Batch, offsets: dict[str, int]) -> Fields:
    """Of Acked; `offsets` are the first ones of each key."""
    return {**named(batch), "offsets": {key: offsets[key] for key in batch.appends}}


def carried(entries: list[Entry]) -> Fields:
    """Of Try: the batches in a compare-and-set."""
    return {"ids": [[writer, seq] for writer, seq, *_ in entries]}


def committed(head: Head, entries: list[Entry]) -> Fields:
    """Of Commit, after which the log has this head."""
    return {"length": head.end, **carried(entries)}


def sealed(segment: Segment) -> Fields:
    """Of Seal: the first slot of a segment that is in the store."""
    return {"base": segment.base}


def known(head: Head) -> Fields:
    """Of Refresh and Answered: what a replica knows now."""
    return {"length": head.end, "epoch": head.epoch}


def switched(head: Head) -> Fields:
    """Of Fence and Unfence."""
    return {"epoch": head.epoch}


def polled(key: str, offset: int, run: Pairs) -> Fields:
    """Of Poll."""
    return {"key": key, "from": offset, "offsets": [at for at, *_ in run]}


def claimed(index: Index) -> Fields:
    """Of Claim, by whom took the index over."""
    return {"epoch": index.epoch, **cursor(index)}


def cursor(index: Index) -> Fields:
    """Of the three steps of compaction: the slot at which the segments at the cursor begin."""
    runs = (each.base for each in index.listed if each.first >= index.cursor)
    return {"base": next(runs, index.end)}
