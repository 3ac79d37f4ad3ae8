"""Checks what groups of consumers keep in a log: cursors, and members with their keys."""

from leaderless.library.cursors import cursor_of
from leaderless.library.findings import Findings
from leaderless.library.laws.rules import require_claimed
from leaderless.library.members import Roster, roster_of
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
