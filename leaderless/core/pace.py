"""The pace of a node, as one value: how long it waits for what, and what it pays to save a message.

Chosen at the root, checked once, passed down. No field matters for safety: whatever `Pace` accepts, the log
is the same, sooner or later, with more messages or fewer. `Limits` bounds how much or how many; `Pace` says
when, and by whom.
"""

from dataclasses import dataclass
from math import inf

from leaderless.core.shape import require_fields

FAR_S = 1.0  # so long a call may take that follows a lost one, while no round trip was measured


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one node. All nodes of a log may differ in it. Raises `ValueError` for a bad relation.

    Times are seconds. The price:

    `message_worth_s`: how long a client may wait to save one server message. From it follow whether a batch is
        handed over, and for how long one waits for company. Higher: fewer messages, later answers. 0: nobody
        waits, and messages cost nothing.
    `linger_s_max`: a bound of that wait, whatever the price.

    Other nodes:

    `hedge_s_min`: a batch waits for a peer for so long at least until it goes another way, too, under the same
        name. The measured hand-overs say how long beyond that: see `lost_deviations`. Shorter: a processor that
        is busy for so long looks like a loss, and batches go two ways. Longer: more waiting for a peer that is
        cut off.
    `greeting_s`: so much longer it waits for a peer that has answered no batch before, which must be reached
        and greeted first. Shorter: where many begin together, each commits for itself. Longer: more waiting for
        a peer that stands still.
    `hedge_s_max`: the most that a batch waits so. Longer: a client may have left when the other ways are tried.
    `probe_s_max`: pauses between two questions to a late peer double up to this; with 0 each is as long as a
        batch waits. Longer: fewer questions to processes that have ended.
    `gathers`: after a commit with batches of peers, for which share of a round trip to wait for the next of
        them to bring another one, `linger_s_max` at most. Longer: fewer commits with more in each.
    `commit_every_s`: from one commit of this node to the next, at least; what waits goes into the next one. For
        a store that takes few writes of one object: it would refuse the others, or let them wait when it is too
        late to add what has come since.
    `rest_every`: so many commits in a row, at most, are followed by a round trip of rest; fewer while others
        commit. In the rest a node that reaches no peer can commit for itself; without one it
        would lose for ever. Each rest costs the batches a round trip.
    `turn_commits`: where this node reaches no other, and the log takes no more commits, whoever won a race
        makes so many of them, while the others stand back; 0: all race for each. More: fewer requests in vain,
        and longer waits for those whose turn it is not.

    The store:

    `store_timeout_s`: how long a call may take while no round trip was measured; later it is a floor under
        what was measured (RFC 6298 has one too: below it, a busy processor looks like a loss). Lower: a lost
        call is noticed sooner, and a slow store is asked twice.
    `lost_deviations`: a call is lost, and a peer late, after the mean and so many deviations of what was
        measured. Lower: what is slow by chance is asked twice.
    `store_attempts`: so many calls in a row may get no answer, then the request gets an indefinite error. More
        outlast a longer silence, and cost a message and a timeout each; with `store_timeout_s` each, they
        should end within a client's patience.
    `error_pause_s`: a pause after an error of the store; it doubles with each, at most to
        `error_pause_max_s`. Longer: fewer messages to a store in trouble, later return.
    `error_patience_s`: errors are answered by a new attempt until the pauses after them come to so much: a
        store that refuses for less costs latency, not an error. Just below the time that a client waits:
        an attempt after that helps nobody. With the pauses above it is nine messages for each call.
    """

    message_worth_s: float = 0.003
    linger_s_max: float = 0.01

    hedge_s_min: float = 0.08
    greeting_s: float = 0.0
    hedge_s_max: float = 4 / 3
    probe_s_max: float = 0.0
    gathers: float = 0.0
    commit_every_s: float = 0.0
    rest_every: int = 8
    turn_commits: int = 0

    store_timeout_s: float = 1.0
    lost_deviations: float = 4
    store_attempts: int = 3
    error_pause_s: float = 0.01
    error_pause_max_s: float = 1.0
    error_patience_s: float = 4.0

    def __post_init__(self) -> None:
        times = ("store_timeout_s", "error_pause_s")
        require_fields(self, "above 0", lambda value: value > 0, *times, "lost_deviations")
        require_fields(self, "at least 1", lambda count: count >= 1, "rest_every", "store_attempts")
        waits = ("message_worth_s", "commit_every_s")
        require_fields(self, "at least 0 and finite", lambda s: 0 <= s < inf, *waits)
        # A peer that waits for company must not look late.
        bound = f"at least 0 and below hedge_s_min ({self.hedge_s_min})"
        require_fields(self, bound, lambda s: 0 <= s < self.hedge_s_min, "linger_s_max")
        bound = f"at least error_pause_s ({self.error_pause_s})"
        patience = ("error_pause_max_s", "error_patience_s")
        require_fields(self, bound, lambda s: s >= self.error_pause_s, *patience)

    @property
    def lease_s(self) -> float:
        """How long a lease may stand still, in seconds, before its owner counts as crashed.

        Longer than a silent store call with all its attempts, and one more: a live owner that loses one
        answer beats again in time. A longer lease delays the successor of a crashed owner. Never shorter than
        the first calls to a store that is farther away than `store_timeout_s`.
        """
        return max((self.store_attempts + 1) * self.store_timeout_s, FAR_S)
