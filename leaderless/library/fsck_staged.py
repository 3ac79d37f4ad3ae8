"""Checks what sinks have staged in a log (`leaderless.library.staged`)."""

from leaderless.library.findings import Findings
from leaderless.library.staged import FOLDER, PLAN, decision_of, epoch_of
from leaderless.store.port import all_of


async def check_staged(findings: Findings) -> int:
    """Check all epochs; returns how many objects wait for a commit, or for a vacuum."""
    staged = 0
    async for listed in all_of(findings.store, FOLDER):
        staged += 1
        match listed.key.split("/"):
            case [_, _, _, name] if name == PLAN and epoch_of(listed.key):
                await findings.read(listed.key, decision_of)
            case [_, _, _, _attempt, part] if part.isdigit() and epoch_of(listed.key):
                findings.objects += 1
            case _:
                findings.add("RegistersReadable", listed.key, "its name is none of this program")
    return staged
