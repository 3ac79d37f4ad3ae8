"""Checks what clients keep beside the records of a log.

Groups of consumers keep cursors, and members with their keys. Sinks keep what they have staged
(`leaderless.hosting.staged`).
"""

from leaderless.hosting.cursors import cursor_of
from leaderless.hosting.findings import Findings
from leaderless.hosting.laws.rules import require_claimed
from leaderless.hosting.members import Roster, roster_of
from leaderless.hosting.staged import FOLDER, PLAN, decision_of
from leaderless.store.calls import own_keys
from leaderless.store.names import name_of


async def check_groups(findings: Findings) -> None:
    """Check all groups. Cursors are read before the owners of their keys, whose epochs rise first."""
    cursors: dict[str, tuple[str, str, int]] = {}  # by name: group, key and epoch
    rosters: dict[str, Roster] = {}
    for name in await own_keys(findings.store, "group"):
        match name.split("/"):
            case [_, group, "cursor", key]:
                if cursor := await findings.read(name, cursor_of):
                    cursors[name] = group, name_of(key), cursor.epoch
            case [_, group, "members"]:
                rosters[group] = await findings.read(name, roster_of) or Roster()
    for name, (group, key, epoch) in cursors.items():
        tenure = rosters.get(group, Roster()).keys.get(key)
        require_claimed(epoch, f"group/{group}/members", tenure, findings.of(name))


async def check_staged(findings: Findings) -> int:
    """Check all epochs of sinks; returns how many objects wait for a commit, or for a vacuum."""
    staged = 0
    for name in await own_keys(findings.store, FOLDER):
        staged += 1
        if name.endswith(f"/{PLAN}"):
            await findings.read(name, decision_of)
        else:
            findings.objects += 1
    return staged
