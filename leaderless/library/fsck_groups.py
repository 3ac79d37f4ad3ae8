"""Checks what groups of consumers keep in a log: cursors, claims, and members."""

from leaderless.core.lease import lease_of
from leaderless.library.cursors import cursor_of
from leaderless.library.findings import Findings
from leaderless.library.laws.rules import require_claimed
from leaderless.library.members import roster_of
from leaderless.store.names import name_of
from leaderless.store.port import all_of


async def check_groups(findings: Findings) -> None:
    """Check all groups. A cursor is read before the claim of its key, whose epoch rises first."""
    async for listed in all_of(findings.store, "group"):
        match listed.key.split("/"):
            case [_, group, "cursor" | "claim" as kind, key] if _is_name(group) and _is_name(key):
                check = _check_cursor if kind == "cursor" else _check_claim
                await check(findings, listed.key)
            case [_, group, "members", _digest] if _is_name(group):
                await findings.read(listed.key, roster_of)
            case _:
                findings.add("RegistersReadable", listed.key, "its name is none of this program")


async def _check_claim(findings: Findings, name: str) -> None:
    await findings.read(name, lease_of)


async def _check_cursor(findings: Findings, name: str) -> None:
    cursor = await findings.read(name, cursor_of)
    if cursor is None or not cursor.epoch:
        return
    register = name.replace("/cursor/", "/claim/")
    claim = await findings.read(register, lease_of)
    require_claimed(cursor.epoch, register, claim, findings.of(name))


def _is_name(segment: str) -> bool:
    try:
        name_of(segment)
    except ValueError:
        return False
    return True
