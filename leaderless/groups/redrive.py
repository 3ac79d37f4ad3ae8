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
from contextlib import suppress
from typing import Literal, NamedTuple

from leaderless.errors import KeyClosed, Unfit
from leaderless.groups.consumer import READ_AT_ONCE
from leaderless.groups.cursors import require_offset
from leaderless.hosting.named import Named, letters_of, of_group
from leaderless.hosting.reads import Readable
from leaderless.store.calls import each_of

LetterStatus = Literal["redriven", "already", "lost", "closed"]


class Redriven(NamedTuple):
    """A dead letter, and what became of its record.

    `key`, `offset`: of the record. `failures`, `cause`: why it was buried; None: nobody said it. `buried_ms`:
    when, see `Record.time_ms`. `status`: it is "redriven" now; it was "already" before, or a later one of the
    key was; it is "lost": a retention has deleted it; or its key is "closed", and `to` may name another one.
    """

    key: str
    offset: int
    failures: int
    cause: str | None
    buried_ms: int | None
    status: LetterStatus = "redriven"


async def redrive(
    log: Readable, named: Named, group: str, keys: Collection[str], to: str | None
) -> list[Redriven]:
    """See `leaderless.api.log.Log.redrive`."""
    if to == letters_of(group):
        raise Unfit(
            f"to must not be {to!r}, where group {group!r} puts its letters: no member reads it"
        )
    letters = await _letters(log, group, keys)

    async def of_key(some: list[Redriven]) -> list[Redriven]:
        return [each._replace(status=await _again(log, named, group, each, to)) for each in some]

    return [each async for _, done in each_of([*letters.values()], of_key) for each in done]


async def _letters(log: Readable, group: str, keys: Collection[str]) -> dict[str, list[Redriven]]:
    """The dead letters of a group by the writer that redrives them; what has no form of one is passed over."""
    found: dict[str, list[Redriven]] = {}
    name, offset = letters_of(group), 0
    while records := (await log.look({name: offset}, READ_AT_ONCE)).records.get(name):
        offset = records[-1].offset + 1
        for _, _, value, buried_ms, _ in records:
            match value:
                case {"key": str(key), "offset": int(at), "failures": int(failures), **rest} if (
                    key in (keys or [key])
                ):
                    with suppress(ValueError):  # no group writes such a letter
                        require_offset(at)
                        found.setdefault(of_group(group, "redriven", key), []).append(
                            Redriven(
                                key,
                                at,
                                failures,
                                str(rest["cause"]) if "cause" in rest else None,
                                buried_ms,
                            )
                        )
    return found


async def _again(
    log: Readable, named: Named, group: str, letter: Redriven, to: str | None
) -> LetterStatus:
    """Append the record of a letter; returns what became of it."""
    if named.contains(of_group(group, "redriven", letter.key), letter.offset):
        return "already"
    found = (await log.look({letter.key: letter.offset}, 1)).records.get(letter.key)
    if not found or found[0].offset != letter.offset:
        return "lost"
    with suppress(KeyClosed):
        await named.append_redriven(group, found[0], to or letter.key)
        return "redriven"
    return "closed"
