"""Faults: what they are called, when each was in force in a history, and in a sentence what it did.

Everything that names, shades or joins faults uses these tables and this definition. The nemesis writes two
operations for each thing it does: what it means to do, then what it has done. A fault begins with the first
operation of its beginning. It ends with the last operation of the next end of its kind, which ends all of
its kind that are in force (`start` starts every killed node). So this is the widest time in which it can
have been in force.

A mute node (`bench.net`) is no act of the nemesis, but disturbs a run like a fault. One operation says that a
node is mute, and one that a new process of that node is heard.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runs import edn
from runs.facts import grouped
from runs.history import NEMESIS, Op, json_text

FAULTS = ("partition", "kill", "pause", "loss", "duplicate", "slow", "store", "fence", "membership")
MUTE, HEARD = "mute", "heard"  # operations; the first is also the kind of the fault


class Action(NamedTuple):
    """What an operation of the nemesis does: a fault begins, or it ends."""

    fault: str
    begins: bool


# Operations (`f`) that begin and end a fault, where they are not start-X and stop-X
# [jepsen.nemesis.combined]. Only Jepsen's nemeses have `clock`.
NAMED = {
    "kill": ("kill", "start"),
    "pause": ("pause", "resume"),
    "clock": ("bump-clock", "reset-clock"),
    "membership": ("leave", "join"),
}
# fault -> the operation that begins it, and the one that ends it.
OPERATIONS = {fault: NAMED.get(fault, (f"start-{fault}", f"stop-{fault}")) for fault in FAULTS}
_ACTIONS = {
    f: Action(fault, begins)
    for fault, pair in NAMED.items()
    for f, begins in zip(pair, (True, False), strict=True)
}


def action_of(f: str) -> Action | None:
    """What an operation of a nemesis does, ours or Jepsen's; None where nothing is known of it."""
    action, _, fault = f.partition("-")
    other = Action(fault, action == "start") if fault and action in ("start", "stop") else None
    return _ACTIONS.get(f, other)


@dataclass(slots=True)
class Injection:
    """A fault in force from `start_ns` to `end_ns` of the history's time; `text` says what it did.

    One that never ended (`ended` is False) lasts to the end of the history. `intent` and `effect` are the
    values of the two operations that began it.
    """

    fault: str
    start_ns: int
    end_ns: int
    text: str = ""
    ended: bool = field(default=False, compare=False)
    intent: Any = field(default=None, compare=False)
    effect: Any = field(default=None, compare=False)

    def row(self) -> dict[str, Any]:
        """A row of the table `faults` of the lake."""
        return {
            "kind": self.fault,
            "started_ns": self.start_ns,
            "ended_ns": self.end_ns if self.ended else None,
            "target_json": None if self.intent is None else json_text(self.intent),
            "effect_json": None if self.effect is None else json_text(self.effect),
        }


def injections(history: Iterable[Op]) -> list[Injection]:
    """The faults of a history, in order of their beginnings."""
    found: list[Injection] = []
    latest: dict[str, Injection] = {}  # by fault
    in_force: dict[str, list[Injection]] = {}  # by fault
    mute: dict[Any, Injection] = {}  # by node
    ending: dict[str, list[Injection]] = {}  # by fault: ended by the first operation of a pair
    seen: dict[str, int] = {}
    last_ns = 0
    for op in history:
        last_ns = op.time
        if op.process == NEMESIS and op.f in (MUTE, HEARD):
            found += _of_mute(op, mute)
        action = action_of(op.f) if op.process == NEMESIS else None
        if not action:
            continue
        fault, is_second = action.fault, seen.get(op.f, 0) % 2 == 1
        seen[op.f] = seen.get(op.f, 0) + 1
        if action.begins and is_second:
            latest[fault].effect = op.value
        elif action.begins:
            began = Injection(fault, op.time, op.time, intent=op.value, effect=op.value)
            latest[fault] = began
            in_force.setdefault(fault, []).append(began)
            found.append(began)
        else:
            if not is_second:
                ending[fault] = in_force.pop(fault, [])
            for each in ending.get(fault, ()):
                each.end_ns, each.ended = op.time, True
    for each in found:
        each.text = describe(each.fault, each.intent, each.effect)
        each.end_ns = each.end_ns if each.ended else last_ns
    return found


def members(nodes: Sequence[str], history: Iterable[Op]) -> list[str]:
    """The nodes of a cluster at the end of a history that began with `nodes`."""
    changes = [op for op in history if op.process == NEMESIS and isinstance(op.value, Mapping)]
    leave, join = OPERATIONS["membership"]
    left = {node for op in changes if op.f == leave for node in op.value}
    joined = [node for op in changes if op.f == join for node in op.value]
    return [node for node in (*nodes, *joined) if node not in left]


def _of_mute(op: Op, mute: dict[Any, Injection]) -> list[Injection]:
    """The injection that begins with this operation, if one does; `mute` has those in force, by node."""
    node = edn.hashable(op.value.get("node") if isinstance(op.value, dict) else op.value)
    if op.f == MUTE:
        mute[node] = Injection(MUTE, op.time, op.time, effect=op.value)
        return [mute[node]]
    if node in mute:
        ended = mute.pop(node)
        ended.end_ns, ended.ended = op.time, True
    return []


_NAMED_MAX = 6  # so many nodes are named, more are counted
_VALUE_WIDTH = 60
_PARTICIPLES = {
    "kill": "killed",
    "pause": "paused",
    "loss": "were lost",
    "duplicate": "came twice",
}
_STORE_FAULTS = {
    "late": "was late with",
    "abandoned": "answered too late to",
    "lost": "executed and did not answer",
    "reset": "broke off without executing them",
    "throttled": "was too busy for",
    "dripping": "answered in small pieces to",
    "damaged": "gave damaged answers to",
    "refused": "refused",
}


def describe(fault: str, intent: Any, effect: Any) -> str:
    """As in "n2 was killed". `intent` and `effect` are what the nemesis meant to do and did.

    What is of an unknown form, as another tool may write it, is quoted.
    """
    try:
        return _text(fault, intent, effect)
    except (LookupError, TypeError, ValueError):
        text = edn.dumps(effect)
        return f"{fault}: {text[:_VALUE_WIDTH]}{'…' * (len(text) > _VALUE_WIDTH)}"


def _text(fault: str, intent: Any, effect: Any) -> str:
    """The sentence about a fault of a known form; any other raises."""
    match fault:
        case "partition" if type(intent) is not dict and intent is not None:
            return f"the network was cut: {intent}{_sides(effect)}"
        case "kill" | "pause":
            nodes = [effect] if isinstance(effect, str) else list(effect)
            return f"{_names(nodes)} {'was' if len(nodes) < 2 else 'were'} {_PARTICIPLES[fault]}"
        case "loss" | "duplicate":
            what = f"of the messages of {_names(effect['nodes'])} {_PARTICIPLES[fault]}"
            return f"{effect['share']:.0%} {what}"
        case "slow":
            factor = f"{effect['factor']:g} times as long"
            return f"messages of {_names(effect['nodes'])} took {factor}"
        case "store":
            what = f"{effect['share']:.0%} of the requests of {_names(effect['nodes'])}"
            return f"{effect.get('store', 'lin-kv')} {_STORE_FAULTS[effect['mode']]} {what}"
        case "fence":
            outcome, _node = effect
            failed = f"fencing failed: {outcome}"
            undone = "the log may have been fenced" if outcome == "unknown" else failed
            return "the log was fenced" if isinstance(outcome, Mapping) else undone
        case "membership":
            by = f" by {_names([*effect.values()])}" if effect else ""
            return f"{_names([*effect])} {'was' if len(effect) < 2 else 'were'} replaced{by}"
        case "mute":
            return (
                f"{effect['node']} was mute (it sent a message {effect['role']} {reason(effect)})"
            )
    raise ValueError(fault)


def reason(mute: Mapping[str, Any]) -> str:
    """The name because of which a node is mute, and what is wrong with it."""
    if "after-ns" not in mute:
        return f"{mute['name']}, which is no node, service or client of this run"
    return f"client {mute['name']}, which {mute['why']} {mute['after-ns'] / 1e9:.3f} s before"


def _sides(effect: Any) -> str:
    """Who did not hear whom, from what the nemesis did; empty if that does not say it, and for many groups."""
    match effect:
        case [_, dict(cut)] if all(isinstance(each, Collection) for each in cut.values()):
            deaf = grouped((frozenset(map(str, cut[node])), str(node)) for node in cut if cut[node])
        case _:
            return ""
    if cut and not deaf:
        return " (no node)"  # as a minority of three
    sides = sorted(deaf.items(), key=lambda side: (len(side[1]), side[1]))
    if len(sides) == 2 and sides[0][0] == {*sides[1][1]} and sides[1][0] == {*sides[0][1]}:
        return f" ({_names(_ordered(sides[0][1]))} from {_names(_ordered(sides[1][1]))})"
    told = [f"{_names(_ordered(nodes))} did not hear {_names(_ordered(of))}" for of, nodes in sides]
    return f" ({'; '.join(told)})" if 0 < len(told) <= _NAMED_MAX else ""


def _ordered(nodes: Iterable[str]) -> list[str]:
    """By name, with n2 before n10."""
    return sorted(nodes, key=lambda node: (len(node), node))


def _names(nodes: Sequence[Any]) -> str:
    few = len(nodes) <= _NAMED_MAX
    return listed(list(map(str, nodes)) or ["nobody"]) if few else f"{len(nodes)} nodes"


def listed(texts: Sequence[str]) -> str:
    """Texts as a list in a sentence."""
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last
