"""What a fault did, in a few words, from the values of its two operations in a history."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runs import edn

_NAMED_MAX = 6  # so many nodes are named, more are counted
_VALUE_WIDTH = 60
_PLIGHTS = {
    "late": "was late with",
    "abandoned": "answered too late to",
    "lost": "executed and did not answer",
}


def describe(fault: str, intent: Any, effect: Any) -> str:
    """As in "n2 was killed". `intent` and `effect` are what the nemesis meant to do and did.

    What is of an unknown form, as another tool may write it, is quoted.
    """
    try:
        return _TEXTS[fault](intent, effect)
    except (LookupError, TypeError, ValueError):
        text = edn.dumps(effect)
        return f"{fault}: {text[:_VALUE_WIDTH]}{'…' * (len(text) > _VALUE_WIDTH)}"


def _partition(intent: Any, _effect: Any) -> str:
    if type(intent) is dict or intent is None:
        raise ValueError(intent)
    return f"the network was cut: {intent}"


def _hit(verb: str) -> Callable[[Any, Any], str]:
    def text(_intent: Any, effect: Any) -> str:
        nodes = [effect] if isinstance(effect, str) else list(effect)
        return f"{_names(nodes)} {'was' if len(nodes) < 2 else 'were'} {verb}"

    return text


def _links(verb: str) -> Callable[[Any, Any], str]:
    def text(_intent: Any, effect: Any) -> str:
        return f"{effect['share']:.0%} of the messages of {_names(effect['nodes'])} {verb}"

    return text


def _slow(_intent: Any, effect: Any) -> str:
    return f"messages of {_names(effect['nodes'])} took {effect['factor']:g} times as long"


def _store(_intent: Any, effect: Any) -> str:
    plight, share = _PLIGHTS[effect["mode"]], effect["share"]
    return f"lin-kv {plight} {share:.0%} of the requests of {_names(effect['nodes'])}"


def _fence(_intent: Any, effect: Any) -> str:
    outcome, _node = effect
    if isinstance(outcome, Mapping):
        return "the log was fenced"
    return "the log may have been fenced" if outcome == "unknown" else f"fencing failed: {outcome}"


_TEXTS: dict[str, Callable[[Any, Any], str]] = {
    "partition": _partition,
    "kill": _hit("killed"),
    "pause": _hit("paused"),
    "loss": _links("were lost"),
    "duplicate": _links("came twice"),
    "slow": _slow,
    "store": _store,
    "fence": _fence,
}


def _names(nodes: Sequence[Any]) -> str:
    if len(nodes) > _NAMED_MAX:
        return f"{len(nodes)} nodes"
    *others, last = map(str, nodes) if nodes else ["nobody"]
    return f"{', '.join(others)} and {last}" if others else last
