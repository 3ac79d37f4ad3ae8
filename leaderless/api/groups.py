"""Consuming by hand: the record at a group's cursor, and its acknowledgement with one of three answers.

The answers are those of S3-Queue. A consumer that crashes before it acknowledges gets the record again: at
least once.
"""

import shlex
from typing import Literal, NamedTuple

from leaderless.api.log import Log
from leaderless.api.record import Record
from leaderless.errors import OffsetOutOfRange
from leaderless.hosting.cursors import Cursor, Cursors, require_offset

Answer = Literal["advanced", "already_processed", "offset_mismatch"]


class Acked(NamedTuple):
    """The answer to an acknowledgement, and the offset that the group processes next."""

    status: Answer
    next: int


async def consume(log: Log, group: str, key: str) -> Record | None:
    """The record at the group's cursor, which does not move; None when there is none yet."""
    cursor = await log.cursors.read(group, key)
    try:
        records = await log.read(key, cursor.next, 1)
    except OffsetOutOfRange as lost:
        command = f"leaderless ack {shlex.quote(key)} {lost.earliest - 1} --through"
        hint = f"`{command} --group {shlex.quote(group)}` goes on behind that"
        raise OffsetOutOfRange(key, lost.offset, lost.earliest, hint) from None
    return records[0] if records else None


async def ack(
    cursors: Cursors, group: str, key: str, offset: int, *, through: bool = False
) -> Acked:
    """Acknowledge the record at the cursor, which moves on; `through`: all records up to this one.

    "already_processed": it was before, and nothing changes. "offset_mismatch": the record is further on than
    the cursor, and nothing changes.
    """
    require_offset(offset)
    answer: Answer = "advanced"

    def change(old: Cursor) -> Cursor:
        nonlocal answer
        if offset == old.next or (through and offset > old.next):
            answer = "advanced"
            return old.raised_to(offset)
        answer = "already_processed" if offset < old.next else "offset_mismatch"
        return old

    cursor = await cursors.change(group, key, change)
    return Acked(answer, cursor.next)
