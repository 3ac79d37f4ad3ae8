"""Checks what groups of consumers keep in a log: cursors, claims, and members."""

from leaderless.core.lease import lease_of
from leaderless.library.cursors import cursor_of
from leaderless.library.findings import Findings
from leaderless.library.laws.rules import require_claimed
from leaderless.library.members import roster_of
from leaderless.store.calls import own_keys


async def check_groups(findings: Findings) -> None:
    """Check all groups. A cursor is read before the claim of its key, whose epoch rises first."""
    for name in await own_keys(findings.store, "group"):
        match name.split("/"):
            case [_, _, "cursor", _]:
                await _check_cursor(findings, name)
            case [_, _, "claim", _]:
                await findings.read(name, lease_of)
            case _:
                await findings.read(name, roster_of)


async def _check_cursor(findings: Findings, name: str) -> None:
    cursor = await findings.read(name, cursor_of)
    if cursor is None or not cursor.epoch:
        return
    register = "/claim/".join(name.rsplit("/cursor/", 1))
    claim = await findings.read(register, lease_of)
    require_claimed(cursor.epoch, register, claim, findings.of(name))
