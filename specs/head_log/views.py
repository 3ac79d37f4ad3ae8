"""A node's view of the log (specs/HeadLog/Views.tla): the pure half of HeadLog, the fold.

Values are never changed: what an action makes is a new one, which shares all else with the one before.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)
Key = Hashable
Node = Hashable
Writer = tuple[Node, Hashable]  # a node and one of its lives
TOKEN = "\0"


class Map(dict[K, V]):
    """A mapping that nobody changes once it is made, so that it can be part of a state."""

    __slots__ = ("_hash",)

    def __hash__(self) -> int:  # type: ignore[override]
        try:
            return self._hash
        except AttributeError:
            self._hash: int = hash(frozenset(self.items()))
            return self._hash

    def put(self, key: K, value: V) -> "Map[K, V]":
        """The same with another value."""
        return Map({**self, key: value})

    def without(self, key: K) -> "Map[K, V]":
        """The same without a key."""
        return Map({k: v for k, v in self.items() if k != key}) if key in self else self


class Id(NamedTuple):
    """The name of a batch; its writer is (node, incarnation)."""

    node: Node
    incarnation: Hashable
    seq: int

    @property
    def writer(self) -> Writer:
        return self.node, self.incarnation


class Content(NamedTuple):
    """What a batch has: messages a key, committed offsets and tokens, the ends that it expects.

    Keys with none are left out.
    """

    counts: Map[Key, int]
    commits: Map[Key, int]
    expected: Map[Key, int] = Map()

    @property
    def tokens(self) -> dict[Key, int]:
        """Those of keys."""
        return {str(k)[1:]: n for k, n in self.commits.items() if str(k).startswith(TOKEN)}


class Entry(NamedTuple):
    """`payload`, `epoch` and `expected` are ghosts.

    What it really carries, the epoch its committer believed in, and where keys had to end.
    """

    id: Id
    payload: Hashable
    epoch: int
    first: Map[Key, int]
    counts: Map[Key, int]
    commits: Map[Key, int]
    expected: Map[Key, int] = Map()


class Block(NamedTuple):
    """The offsets of a key that one batch has."""

    id: Id
    first: int
    size: int


class View(NamedTuple):
    """`length` in slots; blocks of each key; the highest seq of each writer; committed offsets and tokens."""

    length: int
    blocks: Map[Key, tuple[Block, ...]]
    latest: Map[Writer, int]
    committed: Map[Key, int]

    def end(self, key: Key) -> int:
        """The offset after the last message of a key."""
        blocks = self.blocks.get(key)
        return blocks[-1].first + blocks[-1].size if blocks else 0

    def token(self, key: Key) -> int:
        """The highest token of a key; -1: it has none."""
        return self.committed.get(f"{TOKEN}{key}", -1)


EMPTY_VIEW = View(0, Map(), Map(), Map())


def in_log(view: View, id_: Id) -> bool:
    """Is this batch in the log already? The highest committed seq of a writer answers for all of them."""
    return view.latest.get(id_.writer, 0) >= id_.seq


def apply(view: View, e: Entry) -> View:
    """The view with one entry more."""
    blocks = {
        key: (*view.blocks.get(key, ()), Block(e.id, e.first[key], n))
        for key, n in e.counts.items()
    }
    latest = max(e.id.seq, view.latest.get(e.id.writer, 0))
    return View(
        view.length + 1,
        Map(view.blocks | blocks) if blocks else view.blocks,
        view.latest.put(e.id.writer, latest),
        _raised(view.committed, e.commits),
    )


def apply_all(view: View, entries: Iterable[Entry]) -> View:
    """The view with these entries more."""
    for e in entries:
        view = apply(view, e)
    return view


def fold(entries: Iterable[Entry]) -> View:
    """The view of these entries alone."""
    return apply_all(EMPTY_VIEW, entries)


def merge(view: View, run: View, length: int) -> View:
    """Take from a run the part that the view lacks: it may have seen some of it as a tail."""
    blocks = {
        key: (*view.blocks.get(key, ()), *(b for b in own if b.first >= view.end(key)))
        for key, own in run.blocks.items()
    }
    return View(
        length,
        Map(view.blocks | blocks),
        _raised(view.latest, run.latest),
        _raised(view.committed, run.committed),
    )


def _raised(known: Map[K, int], others: Mapping[K, int]) -> Map[K, int]:
    """The greater of both numbers, key by key."""
    if not others:
        return known
    return Map({**known, **{key: max(n, known.get(key, 0)) for key, n in others.items()}})
