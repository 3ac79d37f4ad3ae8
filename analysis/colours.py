"""Colours that mean the same in every picture: colour-blind readers can tell them apart (Okabe & Ito)."""

from collections.abc import Iterable

ALARM = "#cc3311"
_STRATEGIES = {
    "leaderless": "#0072b2",
    "cas": "#e69f00",
    "prefetch-sealed": "#009e73",
    "leader": "#7d6a8f",
    "prefetch": ALARM,
}
_OTHERS = ("#56b4e9", "#cc79a7", "#8a8f98", "#5c4a32")


def strategies(names: Iterable[str]) -> list[str]:
    """Names in the order in which they are shown: those known here first, others after them."""
    there = set(names)
    known = [name for name in _STRATEGIES if name in there]
    return known + sorted(there - set(known))


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each strategy; the same in every picture for those known here."""
    found = dict(_STRATEGIES)
    for number, name in enumerate(strategies(names)):
        found.setdefault(name, _OTHERS[number % len(_OTHERS)])
    return found
