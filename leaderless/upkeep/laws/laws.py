"""`Laws`: told of every change of one log's objects, and which law each of them is under."""

from collections.abc import Callable
from typing import TypeVar

from leaderless.core.claims import claim_of
from leaderless.core.coordination import Json, Misfit, is_deleted
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import COMPACTED, IndexEntry
from leaderless.core.headlog.records import (
    HEAD,
)
from leaderless.core.messages import Entry
from leaderless.core.shape import Shape
from leaderless.errors import LogError
from leaderless.groups.members import Roster, roster_of
from leaderless.hosting.named import FOLDER as NAMED
from leaderless.store.format import format_in
from leaderless.store.names import FORMAT, name_of
from leaderless.store.values import reference_in
from leaderless.table.manifest import TABLE, manifest_of
from leaderless.upkeep.laws.head import HeadLaw
from leaderless.upkeep.laws.index import IndexLaw
from leaderless.upkeep.laws.rules import (
    is_same,
    raising,
    require,
    require_deletable,
    require_shape,
)
from leaderless.upkeep.laws.shared import (
    committed_changed,
    cursor_changed,
    lease_changed,
    manifest_changed,
    members_changed,
    plan_changed,
)
from leaderless.upkeep.staged import FOLDER as STAGED
from leaderless.upkeep.staged import LAST, PLAN, epoch_of, seq_of

T = TypeVar("T")
TABLE_CLAIM = "claim/table"  # of `leaderless.table.upkeep`, whose packages may be missing
JUDGED = {HEAD, "segment", "run", "page", COMPACTED, "claim", "group", "committed", TABLE}
JUDGED |= {STAGED, "data", FORMAT}


def is_judged(key: str) -> bool:
    """Whether an object is under a law."""
    return key.partition("/")[0] in JUDGED


def has_content(key: str) -> bool:
    """Whether a law looks into an object; of others it only knows that they are there."""
    folder = key.partition("/")[0]
    return folder != "data" and (folder != STAGED or key.endswith(f"/{PLAN}"))


class Laws:
    """The laws of one log. `objects`: what its objects hold, as JSON; of some only that they are there."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.head: HeadLaw = HeadLaw()
        self.index: IndexLaw = IndexLaw(self.objects)
        self._referred: dict[str, int] = {}  # data objects of records, and the slots of those

    def changed(self, key: str, new: Json) -> list[Entry]:
        """An object holds `new`; None: it was deleted. Returns the entries that the log has more.

        Raises `InvariantBroken`. What is there already may be written again.
        """
        old = self.objects.get(key)
        try:
            return self._judge(key, old, new)
        except (Misfit, LogError, KeyError, TypeError, ValueError, IndexError) as error:
            raising("RegistersReadable", f"{key} holds {str(new)[:200]}: {error!r}")
        finally:
            if new is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = new

    def _judge(self, key: str, old: Json, new: Json) -> list[Entry]:
        match key.split("/"):
            case ["head"]:
                return self._head_changed(new)
            case ["segment" | "run" | "page" as kind, *names]:
                self._made_once(kind, names, old, new)
            case ["compacted"]:
                self.index.changed(new, self._held(CLAIM, claim_of))
            case ["claim", _]:
                lease_changed(None if old is None else claim_of(old), claim_of(new))
            case ["group", group, "cursor", name]:
                register = f"group/{group}/members"
                roster = self._held(register, roster_of) or Roster()
                cursor_changed(old, new, register, roster.keys.get(name_of(name)))
            case ["group", _, "members"]:
                members_changed(old, new)
            case ["committed", _]:
                committed_changed(old, new, self.head)
            case ["table"]:
                manifest_changed(old, new, TABLE_CLAIM, self._held(TABLE_CLAIM, claim_of))
            case ["sink", *_, "plan"]:
                plan_changed(old, new, is_done=self._is_done(key))
            case ["data", *_] if new is None:
                self._data_deleted(key)
            case ["format"]:
                self._note_format(new)
        return []

    def _held(self, register: str, decode: Callable[[Json], T]) -> T | None:
        """What a register holds, None when it is missing."""
        return decode(self.objects[register]) if register in self.objects else None

    def _head_changed(self, new: Json) -> list[Entry]:
        slot = self.head.end
        added = self.head.changed(new, self.objects)
        for reference in self._refer(slot, added):
            text = f"a new record refers to {reference}, which is not there"
            require(reference in self.objects, "DataReadable", text)
        return added

    def _made_once(self, kind: str, names: list[str], old: Json, new: Json) -> None:
        """Segments, runs and pages never change; of a segment that is in a run, a tombstone is left."""
        name = "/".join((kind, *names))
        if kind == "segment" and is_deleted(new):
            require_deletable(int(names[0]), self.index.sealed, raising)
            return
        require(old is None or is_same(old, new), "SegmentsImmutable", f"{name} changed")
        if old is None and kind == "segment":
            self.head.require_segment(int(names[0]), new)
        elif old is None and kind == "run":
            first, last = map(int, names[0].split("-"))
            self.index.run_changed(IndexEntry(0, first, last, 0, 0, 1, 0), new)

    def _note_format(self, new: Json) -> None:
        """The object `format` says a shape, and keeps it; an unknown one is not judged."""
        found = None if new is None else format_in(new)
        shape = found if isinstance(found, Shape) else None
        require_shape(self.head.shape, shape, raising)
        self.head.shape = shape
        self.index.of_files = shape is not None and shape.sliced

    # ------------------------------------------------------------ what the log refers to

    def _refer(self, slot: int, entries: list[Entry]) -> list[str]:
        """The data objects of these entries. A log on `lin-kv` has no `format`, and no such messages."""
        found: list[str] = []
        if FORMAT in self.objects:
            for at, (_, _, appends, *_) in enumerate(entries, slot):
                for _, messages in appends.values():
                    keys = _data_of(messages)
                    found += keys
                    self._referred.update(dict.fromkeys(keys, at))
        return found

    def _data_deleted(self, key: str) -> None:
        files = self._held(TABLE, manifest_of)
        slot = self._referred.get(key, -1)
        has_left = files is not None and slot < files.start.slot
        require(has_left or slot < 0, "DataReadable", f"{key} of slot {slot} was deleted")

    def _is_done(self, key: str) -> bool:
        """Whether the log has the last batch of the epoch of a plan."""
        writer, number = epoch_of(key)
        return self.head.order.newest.get(f"{NAMED}/{writer}", -1) >= seq_of(number, LAST)


def _data_of(messages: list[Json]) -> list[str]:
    return [found.key for found in map(reference_in, messages) if found]
