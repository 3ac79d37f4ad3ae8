"""Checks what groups of consumers keep in a log: cursors, and members with their keys."""

from leaderless.library.cursors import cursor_of
from leaderless.library.findings import Findings
from leaderless.library.laws.rules import require_claimed
from leaderless.library.members import Roster, roster_of
from leaderless.store.names import name_of
from leaderless.store.port import all_of


async def check_groups(findings: Findings) -> None:
    """Check all groups. Cursors are read before the owners of their keys, whose epochs rise first."""
    cursors: dict[str, tuple[str, str, int]] = {}  # by name: group, key and epoch
    rosters: dict[str, Roster] = {}
    async for listed in all_of(findings.store, "group"):
        name = listed.key
        match name.split("/"):
            case [_, group, "cursor", key] if _is_name(group) and _is_name(key):
                if cursor := await findings.read(name, cursor_of):
                    cursors[name] = group, name_of(key), cursor.epoch
            case [_, group, "members"] if _is_name(group):
                rosters[group] = await findings.read(name, roster_of) or Roster()
            case _:
                findings.add("RegistersReadable", name, "its name is none of this program")
    for name, (group, key, epoch) in cursors.items():
        tenure = rosters.get(group, Roster()).keys.get(key)
        require_claimed(epoch, f"group/{group}/members", tenure, findings.of(name))


def _is_name(segment: str) -> bool:
    try:
        name_of(segment)
    except ValueError:
        return False
    return True
