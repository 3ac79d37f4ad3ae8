"""Checks what sinks have staged in a log (`leaderless.library.staged`)."""

from typing import Any

from leaderless.core.coordination import Misfit
from leaderless.library.findings import Findings
from leaderless.library.staged import FOLDER, PLAN, condemned_in, epoch_of
from leaderless.store.port import all_of


async def check_staged(findings: Findings) -> int:
    """Check all epochs; returns how many objects wait for a commit, or for a vacuum."""
    staged = 0
    async for listed in all_of(findings.store, FOLDER):
        staged += 1
        match listed.key.split("/"):
            case [_, _, _, name] if name == PLAN and epoch_of(listed.key):
                await findings.read(listed.key, _check_plan)
            case [_, _, _, _attempt, part] if part.isdigit() and epoch_of(listed.key):
                findings.objects += 1
            case _:
                findings.add("RegistersReadable", listed.key, "its name is none of this program")
    return staged


def _check_plan(record: Any) -> None:
    """Raises `Misfit` unless the record is a plan or a condemnation."""
    match record:
        case {"parts": [*_], "batch_bytes": int()}:
            return
    if condemned_in(record) is None:
        raise Misfit("no plan of a sink")
