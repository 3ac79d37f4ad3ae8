"""The messages of a story, as a Lamport diagram takes them, and the names in it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class Diagram:
    """Collects messages as events of a network journal, one millisecond apart."""

    events: list[Event] = field(default_factory=list)
    _under_way: dict[Hashable, Event] = field(default_factory=dict)
    _count: int = 0

    def send(self, src: str, dest: str, key: Hashable = None, **body: object) -> None:
        """A message leaves; it arrives when `arrive` is called with its key, or never."""
        self._count += 1
        message = {"id": self._count, "src": src, "dest": dest, "body": body}
        self._under_way[key] = message
        self._add("send", message)

    def arrive(self, key: Hashable) -> None:
        """The message with this key arrives."""
        self._add("recv", self._under_way.pop(key))

    def tell(self, src: str, dest: str, **body: object) -> None:
        """A message leaves and arrives at once."""
        self.send(src, dest, None, **body)
        self.arrive(None)

    def _add(self, kind: str, message: Event) -> None:
        self.events.append({"type": kind, "time": len(self.events) * 1_000_000, "message": message})


def name_of(kind: str, number: int) -> str:
    """The name of a part in pictures and sentences, such as "bookie-a"."""
    return f"{kind}-{'abcdef'[number]}"


def all_of(names: list[str]) -> str:
    """Names as a list in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
