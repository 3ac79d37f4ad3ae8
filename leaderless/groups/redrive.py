"""Redrive: records that a group has buried are appended again, each once.

    for letter in await log.redrive("billing", ["eu"]):
        print(letter.key, letter.offset, letter.cause, letter.status)

A dead letter (`leaderless.groups.consumer`) names a record. That is appended to the end of its key as the batch
`named/group/<group>/redriven/<key>`, whose number is the record's offset. So it comes once, whoever does it
again, after a crash or at the same time. The letters of a key come in the order of offsets: the numbers rise.

Whoever reads the key gets the record again, other groups too; `to` names a key that only this group consumes.
Its headers say where it was: `redriven_group`, `redriven_key`, `redriven_offset`. The letters stay.
"""

from collections.abc import Collection
from itertools import chain
from typing import Literal, NamedTuple

from leaderless.groups.consumer import READ_AT_ONCE
from leaderless.hosting.named import Named, letters_of
from leaderless.hosting.reads import Readable, Record
from leaderless.store.calls import each_of


class Redriven(NamedTuple):
    """A dead letter, and what became of its record.

    `key`, `offset`: of the record. `failures`, `cause`: why it was buried; None: nobody said it. `buried_ms`:
    when, see `Record.time_ms`. `status`: it is "redriven" now; it was "already" before, or a later one of the
    key was; or it is "lost": a retention has deleted it.
    """

    key: str
    offset: int
    failures: int
    cause: str | None
    buried_ms: int | None
    status: Literal["redriven", "already", "lost"] = "redriven"


async def redrive(
    log: Readable, named: Named, group: str, keys: Collection[str], to: str | None
) -> list[Redriven]:
    """See `leaderless.api.log.Log.redrive`."""
    letters: dict[str, list[Redriven]] = {}
    for each in await _letters(log, named, group):
        if not keys or each.key in keys:
            letters.setdefault(each.key, []).append(each)

    async def of_key(some: list[Redriven]) -> list[Redriven]:
        return [await _redriven(log, named, group, each, to) for each in some]

    done = [each async for _, each in each_of([*letters.values()], of_key)]
    return [*chain.from_iterable(done)]


async def _letters(log: Readable, named: Named, group: str) -> list[Redriven]:
    """The dead letters of a group, as they are in the log; what others have appended there is passed over."""
    found: list[Redriven] = []
    name, offset = letters_of(group), 0
    while records := (await log.look({name: offset}, READ_AT_ONCE)).records.get(name):
        offset = records[-1].offset + 1
        found += filter(None, map(_letter_in, records))
    return [each for each in found if named.contains_of(group, "dead", each.key, each.offset)]


def _letter_in(record: Record) -> Redriven | None:
    match record.value:
        case {"key": str(key), "offset": int(offset), "failures": int(failures), **rest}:
            return Redriven(key, offset, failures, _text_in(rest.get("cause")), record.time_ms)
    return None


def _text_in(cause: object) -> str | None:
    return cause if isinstance(cause, str) else None


async def _redriven(
    log: Readable, named: Named, group: str, letter: Redriven, to: str | None
) -> Redriven:
    key, offset = letter.key, letter.offset
    if named.contains_of(group, "redriven", key, offset):
        return letter._replace(status="already")
    found = (await log.look({key: offset}, 1)).records.get(key)
    if not found or found[0].offset != offset:
        return letter._replace(status="lost")
    await named.append_redriven(group, found[0], to or key)
    return letter
