"""A tiny language for histories: one operation a line.

    0 send x=1@0              process 0 sends 1 to x, acknowledged at offset 0
    0 send x=1 info           nobody knows whether it was sent (also: fail)
    1 poll x=1@0,2@1 y=1@0    process 1 polls two messages of x and one of y
    1 poll                    and then nothing
    1 assign x y              is assigned two keys (append `rewind` to start from the beginning)
    2 txn >x=1@0 <y=3@2       a transaction that sends (>) and polls (<)
    3 crash                   ends info
    0 send x=2 invoke         only the invocation; a later line of process 0 completes it
    1 read [7,8] final        an operation of another workload: its value is JSON; a read at the end
    # a comment

An offset is JSON, too: `x=1@null` was not told. The last word is the type of the completion, ok by default.
Every half of an operation takes a millisecond.
"""

import json
from collections.abc import Iterator
from typing import Any, cast, get_args

from runs.history import Keyword, Op, OpType
from workloads.kafka.client import COMMITTED

TICK_NS = 1_000_000
LISTS = "lists="  # the committed offsets that an assignment got, as JSON
MARKS = {"rewind": Keyword("seek-to-beginning?"), "final": Keyword("final?")}


def history(text: str) -> list[Op]:
    """The history that `text` describes."""
    ops: list[Op] = []
    pending: set[int] = set()
    for line in text.splitlines():
        words = line.split("#")[0].split()
        for kind, process, f, args in _events(words, pending) if words else ():
            tells = kind == "ok" or (kind != "invoke" and any("@" in arg for arg in args))
            value = _value(f, args) if tells else _asked(f, args)
            extra: dict[str, Any] = {MARKS[arg]: True for arg in args if arg in MARKS}
            listed = (arg.removeprefix(LISTS) for arg in args if arg.startswith(LISTS))
            extra |= ((COMMITTED, json.loads(each)) for each in listed if kind == "ok")
            time_ns = (len(ops) + 1) * TICK_NS
            ops.append(Op(len(ops), time_ns, kind, process, Keyword(f), value, extra))
    return ops


def _events(words: list[str], pending: set[int]) -> Iterator[tuple[OpType, int, str, list[str]]]:
    """The invocation, unless the process has one pending, and the completion, if there is one."""
    name, f, *args = words
    process = int(name)
    ending = args.pop() if args and args[-1] in get_args(OpType) else None
    kind = cast(OpType, ending or ("info" if f == "crash" else "ok"))
    if process not in pending:
        pending.add(process)
        yield "invoke", process, f, args
    if kind != "invoke":
        pending.discard(process)
        yield kind, process, f, args


def _asked(f: str, args: list[str]) -> object:
    if f in ("read", "generate"):
        return None
    if f not in ("send", "poll", "txn"):
        return _value(f, args)
    sends = [arg.lstrip(">").split("=") for arg in args if f == "send" or arg[0] == ">"]
    asked = [[Keyword("send"), key, int(value.split("@")[0])] for key, value in sends]
    return asked + ([[Keyword("poll")]] if f != "send" else [])


def _value(f: str, args: list[str]) -> object:
    if f == "crash":
        return None
    if f == "assign":
        return [arg for arg in args if arg != "rewind" and not arg.startswith(LISTS)]
    if f not in ("send", "poll", "txn"):
        return json.loads(args[0])
    mops: list[list[Any]] = []
    for arg in args:
        key, _, messages = arg.lstrip("<>").partition("=")
        pairs = [_pair(message) for message in messages.split(",") if message]
        if f == "send" or arg[0] == ">":
            mops.append([Keyword("send"), key, pairs[0] if "@" in arg else pairs[0][1]])
        elif mops and mops[-1][0] == "poll":
            mops[-1][1][key] = pairs
        else:
            mops.append([Keyword("poll"), {key: pairs}])
    return mops or [[Keyword("poll"), {}]]


def _pair(message: str) -> list[Any]:
    value, _, offset = message.partition("@")
    return [json.loads(offset or "null"), int(value)]


def timed(*lines: tuple[Any, ...]) -> list[Op]:
    """Operations told as `(time_s, type, process, f, value)`."""
    return [Op(index, int(at * 1e9), *rest) for index, (at, *rest) in enumerate(lines)]
