"""What a log takes from outside beside its store: wall clock, names that no other process makes, and more."""

import os
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from leaderless.core.headlog.policy import CommitPolicy, PolicyMaker
from leaderless.core.strategy import Identity, Trace


class Surroundings(NamedTuple):
    """`now`: seconds since 1970. `name`: a new name each time, unique among all processes, of the form that
    `leaderless.store.names` knows. `trace`: makes what takes the steps of the protocol of a log with this
    identity. `policy`: makes the policy of its commits.
    """

    now: Callable[[], float]
    name: Callable[[], str]
    trace: Callable[[Identity], Trace] = lambda _: Trace()
    policy: PolicyMaker = CommitPolicy

    def token(self) -> str:
        """The random part of a new name: 16 hexadecimal digits."""
        return self.name()[-16:]


REAL = Surroundings(time.time, lambda: f"{os.getpid()}-{secrets.token_hex(12)}")
