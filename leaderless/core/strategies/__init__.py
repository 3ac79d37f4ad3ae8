"""The strategies: ways to keep a log on a compare-and-set store. Each module says where it is weak.

A node imports the one that it runs.
"""

from collections.abc import Callable
from importlib import import_module

from leaderless.core.strategy import Context, Strategy


def _class_of(module: str, name: str) -> Callable[[Context], Strategy]:
    def make(context: Context) -> Strategy:
        made: Strategy = getattr(import_module(f"{__name__}.{module}"), name)(context)
        return made

    return make


STRATEGIES: dict[str, Callable[[Context], Strategy]] = {
    "leaderless": _class_of("leaderless", "LeaderlessLog"),
    "cas": _class_of("cas", "CasLog"),
    "leader": _class_of("leader", "LeaderLog"),
    "prefetch": _class_of("prefetch", "PrefetchLog"),
    "prefetch-sealed": _class_of("prefetch_sealed", "SealedLog"),
}
DEFAULT = "leaderless"
