"""A node's trace in a file, for `python -m simulation.trace FILE`.

A line is `{step, node, ...}`. Each is one write, made before the node sends what comes of it. So what was done
before a crash is in the file, and the file of several nodes of a machine has every cause above its effect.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from leaderless.core.machine import Machine
from leaderless.core.messages import (
    Cas,
    Effect,
    Event,
    Fields,
    Get,
    Json,
    Ok,
    Put,
    StoreAnswer,
    StoreCall,
    StoreOp,
)
from leaderless.core.strategy import Trace

REGISTERS = {"head", "segment", "run", "compacted"}  # the kinds that the model has


class TraceFile(Trace):
    """Appends the steps of a node to `path`, which all nodes of a machine may share; the first is Start."""

    __slots__ = ("_descriptor", "_node")
    on = True

    def __init__(self, path: Path, node: str) -> None:
        self._node = node
        # Open as long as the node runs.
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
        self("Start")

    def __call__(self, name: str, fields: Callable[..., Fields] = dict, *of: object) -> None:
        line = {"step": name, "node": self._node, **fields(*of)}
        os.write(self._descriptor, orjson.dumps(line) + b"\n")


class TracedMachine(Machine):
    """A machine that traces changes of registers: Asked before it asks for one, Told when it was made."""

    def __init__(self, trace: TraceFile, *parts: Any) -> None:
        super().__init__(*parts)
        self._trace = trace
        self._calls: dict[int, StoreOp] = {}

    def step(
        self, event: Event, now: float, arrived_at: float | None = None, *, more: bool = False
    ) -> list[Effect]:
        """As of a machine."""
        if isinstance(event, StoreAnswer):
            op = self._calls.pop(event.call, None)
            if op and isinstance(event.outcome, Ok):
                self._trace("Told", _told, op, event.outcome)
        effects = super().step(event, now, arrived_at, more=more)
        for effect in effects:
            if isinstance(effect, StoreCall) and effect.op.key.partition("/")[0] in REGISTERS:
                self._calls[effect.call] = effect.op
                if not isinstance(effect.op, Get):
                    self._trace("Asked", _asked, effect.op)
        return effects


def _told(op: StoreOp, outcome: Ok) -> Fields:
    """Of Told: the name of a value that the register held."""
    return {"register": op.key, "new": _name(outcome.value if isinstance(op, Get) else _new(op))}


def _asked(op: Cas | Put) -> Fields:
    """Of Asked: the value that a register may get, its name, and the name of the value that it must hold."""
    old = _name(op.old) if isinstance(op, Cas) else None
    return {"register": op.key, "old": old, "new": _name(_new(op)), "value": _new(op)}


def _new(op: Cas | Put) -> Json:
    return op.new if isinstance(op, Cas) else op.value


def _name(value: Json) -> str | None:
    """A short name that no other value has; of no value, None."""
    if value is None:
        return None
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()
