"""Python's cycle collector, paused where it only costs time or reports what means nothing."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """For work that makes millions of small objects and no cycles; also usable as a decorator.

    The collector would walk through all of them again and again: a third of the time of reading and
    judging a large history.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def collected_quietly() -> Iterator[None]:
    """For simulated nodes. No collection inside; afterwards one without reports of half-closed generators.

    Dead nodes are garbage in cycles. Where a generator of a node waits inside another, the collector closes it
    twice, which Python reports as an error that nothing can handle ("generator already executing"). It means
    nothing here: the generators of a node that dies need not end.
    """
    with collection_paused():
        gc.freeze()  # what is older need not be walked
        try:
            yield
        finally:
            report = sys.unraisablehook

            def of_others(unraisable: "sys.UnraisableHookArgs") -> None:
                if str(unraisable.exc_value) != "generator already executing":
                    report(unraisable)

            sys.unraisablehook = of_others
            try:
                gc.collect()
            finally:
                gc.unfreeze()
                sys.unraisablehook = report
