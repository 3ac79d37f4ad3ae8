"""What a log takes from outside beside its store: the wall clock, and names that no other process makes."""

import os
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple


class Surroundings(NamedTuple):
    """`now`: seconds since 1970. `name`: a new name each time, unique among all processes; ASCII letters and
    digits, and `-`.
    """

    now: Callable[[], float]
    name: Callable[[], str]


REAL = Surroundings(time.time, lambda: f"{os.getpid()}-{secrets.token_hex(12)}")
