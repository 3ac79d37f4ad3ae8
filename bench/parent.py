"""A child that does not outlive its parent, whatever becomes of the parent (Linux)."""

import ctypes
import sys
from collections.abc import Callable
from signal import Signals

_PR_SET_PDEATHSIG = 1


def die_with_parent(signal: Signals) -> Callable[[], None] | None:
    """What a child runs between fork and exec: the kernel sends it this signal when its parent ends.

    It holds for the child only, not for the child's children, and for a program that execs another.
    None where the system has no such thing: there the end of stdin has to do.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)  # loaded in the parent: after a fork only simple calls are safe
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal)
