"""What programs of transcripts hold open, and how their words are read and what they return is told."""

import json
from collections import Counter
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from anyio.abc import TaskStatus

from leaderless.api.tail import Status
from leaderless.hosting.reads import Record
from leaderless.upkeep.vacuum import Vacuumed
from tests.datadriven.runner import NOTHING, json_of


class Held:
    """A context that is open in a task of its own, so that it may end before those that were opened later."""

    def __init__(self, context: AbstractAsyncContextManager[Any]) -> None:
        self._context = context
        self._leaves, self._left = anyio.Event(), anyio.Event()
        self.scope = anyio.CancelScope()

    async def run(self, *, task_status: TaskStatus[Any]) -> None:
        with self.scope:
            await self._run(task_status)

    async def _run(self, task_status: TaskStatus[Any]) -> None:
        async with self._context as opened:
            task_status.started(opened)
            await self._leaves.wait()
        self._left.set()

    async def leave(self) -> None:
        self._leaves.set()
        await self._left.wait()


def named(name: str) -> Record:
    """A record by its key and its offset, as it is printed."""
    key, _, offset = name.rpartition("/")
    return Record(key, int(offset), None)


def value_of(word: str) -> Any:
    """An argument: JSON, else a text."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def shown(value: Any) -> str:
    """What a call returned, in one line."""
    match value:
        case None | str():
            return value or ""
        case Record():
            return f"{value.key}/{value.offset}={json_of(value.value)}"
        case Status():
            told = f"{value.state}, {value.compacted} of {value.segments} segments compacted"
            return f"{told}; {value.trouble}" if value.trouble else told
        case Vacuumed():
            files = f", {value.files} files" if value.files else ""
            return f"{value.deleted} deleted{files}"
        case list() | tuple():
            return ", ".join(map(shown, value)) or "none"
        case _:
            return json_of(value)


def counted(told: Counter[str]) -> str:
    """Texts and how often each was told, in one line."""
    lines = [f"{times} x {text or NOTHING}" if times > 1 else text for text, times in told.items()]
    return ", ".join(sorted(lines, key=lambda line: (len(line), line)))
