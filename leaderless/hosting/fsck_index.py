"""Checks the index of a log: the register `compacted`, its pages, and the claims of those that write them.

A page is a function of its children, so what it must hold is worked out again and compared (`laws.rules`).
"""

from collections.abc import Sequence

from leaderless.core.claims import claim_of
from leaderless.core.headlog.compaction import CLAIM
from leaderless.core.headlog.index import (
    COMPACTED,
    Index,
    IndexEntry,
    Page,
    Part,
    decode_part,
    index_of,
)
from leaderless.hosting.findings import Findings
from leaderless.hosting.laws.rules import (
    INDEXED,
    pages_of,
    require_claimed,
    require_order,
    require_slots,
)


class IndexCheck:
    """One check of the index. `runs`: those that it names, in their order."""

    def __init__(self, findings: Findings, *, sliced: bool) -> None:
        self._findings = findings
        self._sliced = sliced
        self.index: Index = Index()
        self.runs: list[IndexEntry] = []

    async def run(self) -> None:
        """Read the index and its pages, and then the claim, whose epoch rises first."""
        self.index = await self._findings.read(COMPACTED, index_of) or Index()
        require_order(self.index.listed, 0, 0, self._findings.of(COMPACTED))
        if self.index.cursor > self.index.sealed:
            text = f"segments below {self.index.cursor} are deleted, those below {self.index.sealed} in runs"
            self._findings.add("CursorNeverPassesCompacted", COMPACTED, text)
        for listed in self.index.listed:
            await self._check(listed)
        claim = await self._findings.read(CLAIM, claim_of)
        require_claimed(self.index.epoch, CLAIM, claim, self._findings.of(COMPACTED))

    async def _check(self, listed: IndexEntry) -> list[Part] | None:
        """Check what is below a page; returns its parts, None if one is missing, or is a file."""
        if not listed.level:
            self.runs.append(listed)
            if self._sliced:
                return None  # it is a file, and may have been merged into another
        parts: list[Part] = []
        for name in listed.registers:
            part: Part | None = await self._findings.read(name, decode_part)
            if part is None:
                self._findings.add(
                    "CommittedReadable", name, "the index names it, and it is no part of it"
                )
                return None
            require_slots(listed, part, self._findings.of(name))
            parts.append(part)
        if listed.level:
            await self._check_page(listed, [part for part in parts if isinstance(part, Page)])
        return parts

    async def _check_page(self, listed: IndexEntry, pages: Sequence[Page]) -> None:
        if len(pages) < listed.parts:
            self._findings.add(INDEXED, listed.register(), "it is a run, and not a page")
            return
        children = pages[0].children
        require_order(children, listed.first, listed.base, self._findings.of(listed.register()))
        checked = [(child, await self._check(child)) for child in children]
        known = [(child, parts) for child, parts in checked if parts is not None]
        if len(known) < len(children):
            return
        for number, expected in enumerate(pages_of(known, listed.parts)):
            if pages[number] != expected:
                text = "it is not what its children make"
                self._findings.add(INDEXED, listed.register(number), text)
