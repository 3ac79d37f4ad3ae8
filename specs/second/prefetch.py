"""Offsets handed out in blocks (specs/Prefetch), written again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specs.second.explorer import Model, with_item


class Block(NamedTuple):
    """A reserved block: the node that may fill it (None: closed) and how many offsets are filled."""

    owner: int | None
    filled: int


class Reader(NamedTuple):
    """A reader: the first offset that it has not gone past, and the offsets that it was given."""

    position: int
    got: frozenset[int]


class State(NamedTuple):
    blocks: tuple[Block, ...]
    readers: tuple[Reader, ...]


@dataclass(frozen=True)
class Prefetch(Model[State]):
    """Sealed ranges; each flag is a broken variant of the manifest."""

    nodes: int
    readers: int
    block: int
    max_blocks: int
    shown_at_once: bool = False
    fill_after_close: bool = False
    blocks_too_far: bool = False

    def initial(self) -> list[State]:
        """Nothing is reserved, and every reader is at offset 0."""
        return [State((), (Reader(0, frozenset()),) * self.readers)]

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Nodes reserve, fill and close blocks; readers poll."""
        blocks = state.blocks
        if len(blocks) < self.max_blocks:
            for node in range(self.nodes):
                if all(node != block.owner for block in blocks):
                    yield "Reserve", state._replace(blocks=(*blocks, Block(node, 0)))
        for number, block in enumerate(blocks):
            # Each node that may fill the block leads to the same state: one step is enough.
            if (block.owner is not None or self.fill_after_close) and block.filled < self.block:
                filled = block._replace(filled=block.filled + 1)
                yield "Fill", state._replace(blocks=with_item(blocks, number, filled))
            if block.owner is not None:
                closed = block._replace(owner=None)
                yield "Close", state._replace(blocks=with_item(blocks, number, closed))
        for number, reader in enumerate(state.readers):
            if shown := {o for o in self._shown(blocks) if o >= reader.position}:
                after = Reader(max(shown) + 1, reader.got | shown)
                yield "Poll", state._replace(readers=with_item(state.readers, number, after))

    def laws(self) -> Mapping[str, Callable[[State], bool]]:
        """The invariants of specs/Prefetch."""
        return {"TypeOK": self._type_ok, "OrderedReads": self._ordered_reads}

    def _offsets(self, blocks: tuple[Block, ...], count: int) -> Iterator[int]:
        away = self.max_blocks if self.blocks_too_far else 0
        for number, block in enumerate(blocks[:count]):
            first = (number + away) * self.block
            yield from range(first, first + block.filled)

    def _shown(self, blocks: tuple[Block, ...]) -> Iterator[int]:
        open_blocks = (number for number, block in enumerate(blocks) if block.owner is not None)
        count = len(blocks) if self.shown_at_once else next(open_blocks, len(blocks))
        return self._offsets(blocks, count)

    def _type_ok(self, state: State) -> bool:
        size = self.max_blocks * self.block
        return all(o < size for o in self._offsets(state.blocks, len(state.blocks)))

    def _ordered_reads(self, state: State) -> bool:
        filled = list(self._offsets(state.blocks, len(state.blocks)))
        return all(
            offset in reader.got
            for reader in state.readers
            for offset in filled
            if offset < reader.position
        )
