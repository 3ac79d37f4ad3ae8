"""Checks the index of a log: the register `compacted`, its pages, and the claims of those that write them.

A page is a function of its children (`leaderless.core.headlog.index`), so it is made again and compared.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from leaderless.core.coordination import Misfit
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    Listed,
    Page,
    decode_part,
    distribute,
    index_of,
    new_page,
)
from leaderless.core.headlog.records import Run, count_of
from leaderless.library.findings import Findings

INDEXED = "IndexMatchesRuns"


class Claim(NamedTuple):
    """The epoch of a claim, and who has it."""

    epoch: int
    owner: str | None


def claim_of(value: Any) -> Claim:
    """The claim in a register's value. Raises `Misfit`."""
    match value:
        case {"epoch": epoch, "owner": str(_) | None as owner, "beat": beat}:
            count_of(beat)
            return Claim(count_of(epoch), owner)
    raise Misfit("no claim")


class IndexCheck:
    """One check of the index. `runs`: those that it names, in their order."""

    def __init__(self, findings: Findings, *, sliced: bool) -> None:
        self._findings = findings
        self._sliced = sliced
        self.index = Index()
        self.runs: list[Listed] = []

    async def run(self) -> None:
        """Read the index and its pages, and then the claim, whose epoch rises first."""
        self.index = await self._findings.read(COMPACTED, index_of) or Index()
        self._check_order(COMPACTED, self.index.listed, 0, 0)
        if self.index.cursor > self.index.sealed:
            text = f"segments below {self.index.cursor} are deleted, those below {self.index.sealed} in runs"
            self._findings.add("CursorNeverPassesCompacted", COMPACTED, text)
        for listed in self.index.listed:
            await self._check(listed)
        claim = await self._findings.read(CLAIM, claim_of)
        require_claim(self._findings, COMPACTED, self.index.epoch, CLAIM, claim)

    async def _check(self, listed: Listed) -> list[Run | Page] | None:
        """Check what is below a page; returns its parts, None if one is missing, or is a file."""
        if not listed.level:
            self.runs.append(listed)
            if self._sliced:
                return None  # it is a file, and may have been merged into another
        parts: list[Run | Page] = []
        for name in listed.registers:
            part: Run | Page | None = await self._findings.read(name, decode_part)
            if part is None:
                self._findings.add(
                    "CommittedReadable", name, "the index names it, and it is no part of it"
                )
                return None
            if (part.base, part.end) != (listed.base, listed.end):
                text = f"it has slots {part.base} to {part.end - 1}, and the index says {listed.base} to "
                self._findings.add(INDEXED, name, f"{text}{listed.end - 1}")
            parts.append(part)
        if listed.level:
            await self._check_page(listed, [part for part in parts if isinstance(part, Page)])
        return parts

    async def _check_page(self, listed: Listed, pages: Sequence[Page]) -> None:
        if len(pages) < listed.parts:
            self._findings.add(INDEXED, listed.register(), "it is a run, and not a page")
            return
        children = pages[0].children
        self._check_order(listed.register(), children, listed.first, listed.base)
        expected: dict[int, Page] | None = {
            part: new_page(children) for part in range(listed.parts)
        }
        for place, child in enumerate(children):
            parts = await self._check(child)
            if parts is None or expected is None:
                expected = None
                continue
            for part in parts:
                distribute(part, place, expected, listed.parts)
        for number, page in enumerate(pages):
            if expected is not None and page != expected[number]:
                text = "it is not what its children make"
                self._findings.add(INDEXED, listed.register(number), text)

    def _check_order(self, name: str, listed: Sequence[Listed], first: int, base: int) -> None:
        before = Listed(0, 0, first - 1, 0, base, 1, 0)
        for one, other in pairwise((before, *listed)):
            if (one.last + 1, one.end) != (other.first, other.base):
                text = f"after segment {one.last} and slot {one.end - 1} comes {other.register()}, "
                self._findings.add(INDEXED, name, f"{text}of slot {other.base}")


def require_claim(
    findings: Findings, name: str, epoch: int, register: str, claim: Claim | None
) -> None:
    """Note it if something was changed in an epoch that nobody has claimed yet."""
    claimed = claim.epoch if claim else 0
    if epoch > claimed:
        text = f"it was changed in epoch {epoch}, and {register} has had {claimed} only"
        findings.add("OneLiveClaim", name, text)
