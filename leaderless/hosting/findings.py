"""What a check of a log finds, and the reads that it makes (`leaderless.hosting.fsck`)."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import NamedTuple, TypeVar

from leaderless.core.coordination import Json, Misfit
from leaderless.errors import Broken, LogError
from leaderless.hosting.laws import rules
from leaderless.hosting.vacuum import READ_AT_ONCE
from leaderless.store.calls import own_keys, read_value, side_by_side
from leaderless.store.port import Store

T = TypeVar("T")


class Finding(NamedTuple):
    """What is wrong: the invariant, the object that shows it, and how."""

    invariant: str
    object: str
    text: str


class Findings:
    """The findings of one check of `store`, and how many objects it has read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.found: list[Finding] = []
        self.objects: int = 0

    def add(self, invariant: str, name: str, text: str) -> None:
        """Note a finding."""
        self.found.append(Finding(invariant, name, text))

    def of(self, name: str) -> rules.Broken:
        """What a rule tells of an object."""
        return lambda invariant, text: self.add(invariant, name, text)

    async def read(self, name: str, decode: Callable[[Json], T | None]) -> T | None:
        """The decoded value of an object; None when it is missing, or makes no sense, which is noted.

        An answer that makes no sense is asked for again, as in any program. Raises `Definite`, such as
        `Unreachable`.
        """
        try:
            found = await read_value(self.store, name, partial(_decoded, decode))
        except Broken as broken:
            self.objects += 1
            self.add("RegistersReadable", name, str(broken))
            return None
        self.objects += found is not None
        return found and found.value

    async def read_all(
        self, folder: str, decode: Callable[[str, Json], T | None]
    ) -> AsyncIterator[tuple[str, T]]:
        """The objects of a folder that make sense, by name."""
        names = await own_keys(self.store, folder)
        for start in range(0, len(names), READ_AT_ONCE):
            some = names[start : start + READ_AT_ONCE]
            reads = [partial(self.read, name, partial(decode, name)) for name in some]
            for name, value in zip(some, await side_by_side(reads), strict=True):
                if value is not None:
                    yield name, value


def _decoded(decode: Callable[[Json], T], value: Json) -> T:
    """What `decode` makes of a value. Raises `Misfit` also for an unknown format."""
    try:
        return decode(value)
    except LogError as error:
        raise Misfit(str(error)) from error
