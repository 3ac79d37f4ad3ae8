"""The strategies: ways to keep a log on a compare-and-set store. Each module says where it is weak.

A node imports the one that it runs.
"""

from collections.abc import Callable

from leaderless.core.strategy import Context, Strategy


def _leaderless(context: Context) -> Strategy:
    from leaderless.core.strategies.leaderless import LeaderlessLog

    return LeaderlessLog(context)


def _cas(context: Context) -> Strategy:
    from leaderless.core.strategies.cas import CasLog

    return CasLog(context.identity)


def _leader(context: Context) -> Strategy:
    from leaderless.core.strategies.leader import LeaderLog

    return LeaderLog(context)


def _prefetch(context: Context) -> Strategy:
    from leaderless.core.strategies.prefetch import PrefetchLog

    return PrefetchLog(context)


def _prefetch_sealed(context: Context) -> Strategy:
    from leaderless.core.strategies.prefetch_sealed import SealedLog

    return SealedLog(context)


STRATEGIES: dict[str, Callable[[Context], Strategy]] = {
    "leaderless": _leaderless,
    "cas": _cas,
    "leader": _leader,
    "prefetch": _prefetch,
    "prefetch-sealed": _prefetch_sealed,
}
DEFAULT = "leaderless"
