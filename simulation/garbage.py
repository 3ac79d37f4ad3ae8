"""Dead nodes are garbage in cycles: who was waiting inside whom is lost when the collector takes them apart.

A process that waits inside another is then closed twice, which Python reports as an error that nobody can
handle ("generator already executing"). It means nothing here: nodes that die never end their processes.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def collected_quietly() -> Iterator[None]:
    """No collection inside; afterwards one that says nothing about half-closed processes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        with patch.object(sys, "unraisablehook", _unless_half_closed(sys.unraisablehook)):
            gc.collect()
        if was_enabled:
            gc.enable()


def _unless_half_closed(report: Any) -> Any:
    def hook(unraisable: Any) -> None:
        if str(unraisable.exc_value) != "generator already executing":
            report(unraisable)

    return hook
