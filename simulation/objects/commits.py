"""Judges committed offsets on a virtual bucket: what was acknowledged is listed from then on, by every process.

Nodes and programs keep them in homes of their own, each of which is judged by itself.
"""

from simulation.judge import Failure

Offsets = dict[str, int]


class Commits:
    """What was asked and what is known, of each home. `broken`: the first list that was wrong."""

    def __init__(self) -> None:
        self._asked: dict[str, Offsets] = {}
        self._known: dict[str, Offsets] = {}
        self.broken: Failure | None = None

    def known(self, home: str) -> Offsets:
        """What everybody who asks from now on must list, at least."""
        return dict(self._known.get(home, {}))

    def asked(self, home: str, offsets: Offsets) -> None:
        """A client asks to commit these."""
        _raise(self._asked.setdefault(home, {}), offsets)

    def acknowledged(self, home: str, offsets: Offsets) -> None:
        """It was done."""
        _raise(self._known.setdefault(home, {}), offsets)

    def listed(self, home: str, by: str, before: Offsets, found: Offsets) -> None:
        """A process lists offsets; `before`: what was known when it was asked."""
        asked = self._asked.get(home, {})
        for key, offset in before.items():
            if found.get(key, -1) < offset:
                text = f"{key} of {home} was at {offset}, and {by} lists {found.get(key)}"
                self.broken = self.broken or Failure("CommitsKept", text)
        for key, offset in found.items():
            if offset > asked.get(key, -1):
                text = f"{by} lists {key} of {home} at {offset}, asked for {asked.get(key)}"
                self.broken = self.broken or Failure("CommitNeverAhead", text)
        self.acknowledged(home, found)


def _raise(known: Offsets, offsets: Offsets) -> None:
    for key, offset in offsets.items():
        known[key] = max(offset, known.get(key, -1))
