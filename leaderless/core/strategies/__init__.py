"""The strategies: ways to keep a log on a compare-and-set store. Each module says where it is weak."""

from collections.abc import Callable

from leaderless.core.strategies.cas import CasLog
from leaderless.core.strategies.leader import LeaderLog
from leaderless.core.strategies.leaderless import LeaderlessLog
from leaderless.core.strategies.prefetch import PrefetchLog
from leaderless.core.strategies.prefetch_sealed import SealedLog
from leaderless.core.strategy import Context, Strategy

STRATEGIES: dict[str, Callable[[Context], Strategy]] = {
    "leaderless": LeaderlessLog,
    "cas": lambda context: CasLog(context.identity),
    "leader": LeaderLog,
    "prefetch": PrefetchLog,
    "prefetch-sealed": SealedLog,
}
DEFAULT = "leaderless"
