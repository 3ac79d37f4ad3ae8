"""Checks what sinks have staged in a log (`leaderless.library.staged`)."""

from leaderless.library.findings import Findings
from leaderless.library.staged import FOLDER, PLAN, decision_of
from leaderless.store.calls import own_keys


async def check_staged(findings: Findings) -> int:
    """Check all epochs; returns how many objects wait for a commit, or for a vacuum."""
    staged = 0
    for name in await own_keys(findings.store, FOLDER):
        staged += 1
        if name.endswith(f"/{PLAN}"):
            await findings.read(name, decision_of)
        else:
            findings.objects += 1
    return staged
