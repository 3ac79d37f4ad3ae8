"""Holds the processes on a virtual bucket to the model, as `simulation.refinement` does with nodes.

A program is a node that starts once: each life of it has another name. To the model a bucket is a store of
registers, whose values are the JSON of its objects.
"""

from collections.abc import Callable

import orjson

from leaderless.core.strategy import Identity, Trace
from simulation.oracle import Violation
from simulation.refinement import Followed, Refinement

FOLLOWED = {"head", "segment", "run"}


class Held:
    """What is followed on one bucket, until `broken`: the first step that is none of HeadLog.

    No process may notice, so nothing is raised here. `model` may be one that is wrong.
    """

    def __init__(self, model: type[Followed] = Followed) -> None:
        self.refinement = Refinement(model)
        self.broken: Violation | None = None

    def traced(self, identity: Identity) -> Trace:
        """A process starts; what takes its steps."""
        self._follow(lambda: self.refinement.started(identity.node))
        return self.refinement.traced(identity.node)

    def changed(self, key: str, value: bytes | None) -> None:
        """An object holds `value`; None: it was deleted."""
        if key.partition("/")[0] in FOLLOWED:
            self._follow(lambda: self.refinement.changed(key, orjson.loads(value or b"null")))

    def settled(self) -> Violation | None:
        """What is wrong with all steps until now."""
        self._follow(self.refinement.settle)
        return self.broken

    def _follow(self, step: Callable[[], object]) -> None:
        try:
            if not self.broken:
                step()
        except Violation as violation:
            self.broken = violation
        except Exception as error:  # as of a register that no process can have written
            self.broken = Violation(f"RefinesHeadLog: this cannot be followed: {error!r}")
