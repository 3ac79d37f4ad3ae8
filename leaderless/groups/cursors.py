"""Committed offsets of groups of consumers: an object for each group and key, which only ever rises.

    group/<group>/cursor/<key>     {"committed": offset or null, "epoch": n, "failures": n, "by": name}

`committed` is the offset of the last record that was processed. `epoch` is that of the member that owns the key
(`leaderless.groups.members`): a commit of an older one is refused. No value comes twice: `epoch` and
`committed` never fall, and `failures` rises until `committed` does. `cause`, where there is one, is the text of
the last failure.

Law: each change counts once, however often it is tried. `by` is the name of the last change, which no other one
has. An attempt whose answer was lost came about if the cursor is what it wrote, name included. If another
change came on top of it, that cannot be seen any more: so a change must give the same when it is applied twice.

What a process has written it changes without a read. If another one was there meanwhile, the store refuses
that; then it reads.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, reduce
from itertools import count
from math import inf
from typing import NamedTuple

import orjson

from leaderless.core.decoding import Decoder, record
from leaderless.core.headlog.commits import committed_of, raised
from leaderless.errors import Broken, Indefinite, NotOwner, Unfit, Unreachable
from leaderless.groups.members import Roster, roster_of
from leaderless.hosting.surroundings import REAL
from leaderless.store.calls import (
    PATIENCE_S,
    Held,
    own_keys,
    patiently,
    read_once,
    read_value,
    side_by_side,
)
from leaderless.store.names import name_of, path_segment
from leaderless.store.port import Store, replaced

Change = Callable[["Cursor"], "Cursor"]
LOST = (
    "A member loses its keys when its event loop stands still for longer than lease_s, or when the store does "
    "not answer for so long"
)
KNOWN_MAX = 1000  # cursors whose versions a process remembers


def require_offset(offset: object) -> None:
    """Raise `Unfit` for what is no offset."""
    if type(offset) is not int or not 0 <= offset < 1 << 63:
        raise Unfit(f"an offset must be an int from 0 to 2^63 - 1, got {offset!r}")


def require_reached(key: str, offset: int, end: float) -> None:
    """Raise `Unfit` for an offset of which there is no record yet: those of the key are below `end`."""
    if offset >= end:
        raise Unfit(
            f"offset {offset} of {key!r} cannot be committed: the key has "
            f"{f'records up to offset {end - 1}' if end else 'no records'}"
        )


class Cursor(NamedTuple):
    """Where a group is in a key."""

    committed: int | None = None
    epoch: int = 0
    failures: int = 0
    by: str = ""
    cause: str = ""

    @property
    def next(self) -> int:
        """The offset to be processed next."""
        return 0 if self.committed is None else self.committed + 1

    def raised_to(self, offset: int) -> "Cursor":
        """The cursor after `offset` was processed, or itself when it is there or further."""
        return self if offset < self.next else self._replace(committed=offset, failures=0, cause="")

    def failed(self, offset: int, failures: int, cause: str) -> "Cursor":
        """The cursor after the record at `offset` has failed so often, last of `cause`, or itself when it knows
        that or is further."""
        return (
            self
            if offset != self.next or failures <= self.failures
            else self._replace(failures=failures, cause=cause)
        )


cursor_of: Decoder[Cursor] = record(Cursor, absent={"cause": ""})  # of an object's value


class Cursors:
    """The cursors of all groups of one log.

    `writer`: a name that no other process has. `patience_s`: how long a call may take. `end_after`: gives the
    end of a key, and looks whether it is after an offset; None: what is committed may be beyond it.
    """

    def __init__(
        self,
        store: Store,
        writer: str = "",
        patience_s: float = PATIENCE_S,
        end_after: Callable[[str, int], Awaitable[int]] | None = None,
    ) -> None:
        self._store = store
        self._writer = writer or REAL.name()
        self._changes = count(1)
        self._patience_s = patience_s
        self._end_after = end_after
        self._known: dict[str, Held[Cursor]] = {}  # what this process wrote last, by name

    async def commit(self, group: str, offsets: Mapping[str, int]) -> None:
        """Raise cursors; see `leaderless.api.log.Log.commit`."""
        for key, offset in offsets.items():
            require_reached(key, offset, await self.end_after(key, offset))
        await side_by_side(
            [
                partial(self.change, group, key, partial(Cursor.raised_to, offset=offset))
                for key, offset in offsets.items()
            ]
        )

    async def end_after(self, key: str, offset: int) -> float:
        """The end of a key, which was looked at unless it is after `offset`. Raises `Unfit` for no offset."""
        require_offset(offset)
        return await self._end_after(key, offset) if self._end_after else inf

    async def committed(self, group: str, keys: Iterable[str]) -> dict[str, int]:
        """The committed offsets that there are."""
        names = list(keys)
        cursors = await side_by_side([partial(self.read, group, key) for key in names])
        found = zip(names, cursors, strict=True)
        return {key: cursor.committed for key, cursor in found if cursor.committed is not None}

    async def of_nodes(self) -> dict[str, int]:
        """The highest offset of each key in the registers of nodes, whose clients have no group."""
        names = await own_keys(self._store, "committed", self._patience_s)
        reads = [partial(read_value, self._store, name, committed_of) for name in names]
        held = [each.value.offsets for each in await side_by_side(reads) if each]
        return reduce(raised, held, {})

    async def read(self, group: str, key: str) -> Cursor:
        """The cursor of a group in a key."""
        held = await read_value(self._store, _name(group, key), cursor_of, self._patience_s)
        return held.value if held else Cursor()

    async def change(self, group: str, key: str, change: Change) -> Cursor:
        """Change a cursor atomically; returns what it is then. Raises `Unreachable` if nothing was written.

        `change` may be called more than once, and gives its own result back unchanged.
        """
        name = _name(group, key)
        by = f"{self._writer}/{next(self._changes)}"
        tried: Cursor | None = None

        async def attempt() -> Cursor | None:
            nonlocal tried
            known = self._known.pop(name, None)
            held = known or await read_once(self._store, name, cursor_of)
            old = held.value if held else Cursor()
            if old == tried:
                return old  # the store had it, whatever it answered
            new = change(old)
            if new == old:
                return None if known else old  # what is known may be out of date
            tried = new._replace(by=by)
            fields = tried if tried.cause else tried[:-1]  # the last one is left out
            text = orjson.dumps(dict(zip(Cursor._fields, fields, strict=False)))
            version = await replaced(self._store, name, text, held and held.version)
            if version is None:
                return None
            if len(self._known) == KNOWN_MAX:
                self._known.clear()
            self._known[name] = Held(tried, version)
            return tried

        try:
            while (cursor := await patiently(attempt, self._patience_s)) is None:
                pass  # another process was faster: so something moves
        except Indefinite as error:
            if tried or isinstance(error, Broken):
                raise
            raise Unreachable(str(error)) from error
        return cursor

    async def groups(self) -> dict[str, tuple[dict[str, Cursor], Roster]]:
        """All groups: cursors by key, also of keys of which it has processed nothing yet, and its members."""
        groups: dict[str, tuple[dict[str, Cursor], Roster]] = {}
        for name in await own_keys(self._store, "group", self._patience_s):
            match name.split("/"):
                case [_, group, "cursor", key]:
                    names = name_of(group), name_of(key)
                    cursors, _ = groups.setdefault(names[0], ({}, Roster()))
                    cursors[names[1]] = await self.read(*names)
                case [_, group, "members"]:
                    held = await read_value(self._store, name, roster_of, self._patience_s)
                    roster = held.value if held else Roster()
                    cursors = groups.get(name_of(group), ({}, roster))[0]
                    for key, tenure in roster.keys.items():
                        cursors.setdefault(key, Cursor().raised_to(tenure.first - 1))
                    groups[name_of(group)] = cursors, roster
        return groups


def require_owner(cursor: Cursor, epoch: int, key: str) -> None:
    """Raise `NotOwner` if a member of a newer epoch owns the key."""
    if cursor.epoch != epoch:
        raise NotOwner(
            f"another member of the group owns {key!r} now; the record is delivered there. {LOST}"
        )


def _name(group: str, key: str) -> str:
    try:
        return f"group/{path_segment(group)}/cursor/{path_segment(key)}"
    except ValueError as error:
        raise Unfit(str(error)) from None
