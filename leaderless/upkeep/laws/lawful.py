"""Tells the laws what the objects of a store hold: for tests, and for whoever does not trust a program."""

import orjson

from leaderless.core.coordination import InvariantBroken, Json
from leaderless.core.messages import Entry
from leaderless.store.compression import plain
from leaderless.upkeep.laws.laws import Laws, has_content, is_judged


class Observer:
    """Tells the laws of all logs of a store, one for each topic, what its objects hold.

    After the first broken law it tells no more: what follows would be judged by a state that may not be.
    `broken`: that law.
    """

    def __init__(self) -> None:
        self._laws: dict[str, Laws] = {}
        self.broken: InvariantBroken | None = None

    def changed(self, key: str, value: bytes | None) -> list[Entry]:
        """An object holds `value`, None: it was deleted. Returns and raises as `Laws.changed`."""
        place, name = _placed(key)
        if self.broken or not is_judged(name):
            return []
        laws = self._laws.setdefault(place, Laws())
        try:
            return laws.changed(name, _parsed(name, value))
        except InvariantBroken as broken:
            self.broken = broken
            raise


def _placed(key: str) -> tuple[str, str]:
    """The folder of the log, and the key in it."""
    folder, topic, *rest = [*key.split("/", 2), ""]
    return (f"{folder}/{topic}", rest[0]) if folder == "topic" and rest[0] else ("", key)


def _parsed(key: str, value: bytes | None) -> Json:
    if value is None or not has_content(key):
        return None if value is None else True
    try:
        parsed: Json = orjson.loads(plain(value))
    except ValueError:
        return str(value)  # it fits no law
    return parsed
