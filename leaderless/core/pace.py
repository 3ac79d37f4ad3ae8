"""The pace of a node, as one value: how long it waits for what, and what it pays to save a message.

Chosen at the root, checked once, passed down. No field matters for safety: whatever `Pace` accepts, the log
is the same, sooner or later, with more messages or fewer. `Limits` bounds how much or how many; `Pace` says
when, and by whom.
"""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one node. All nodes of a log may differ in it. Raises `ValueError` for a bad relation.

    Times are seconds. The price:

    `message_worth_s`: how long a client may wait to save one server message. From it follow whether a batch is
        handed over, and for how long one waits for company. Higher: fewer messages, later answers. 0: nobody
        waits, and messages cost nothing.
    `linger_s_max`: a bound of that wait, whatever the price.

    Other nodes:

    `hedge_deviations`: a batch whose peer has not answered after the mean and so many deviations of a
        hand-over, or twice the mean, goes another way, too, under the same name, and with it all that wait for
        that peer; later batches pass it over until it has answered. Fewer: less waiting for a peer that is cut
        off, more batches that go two ways, which costs two messages each and makes commits of others fail.
    `hedge_s_min`: it waits for so long at least. A processor that is busy for so long must not look like a
        loss.
    `late_s_max`: a peer that is late is passed over for twice the time that it was waited for, and for twice as
        long each time, at most for so long. Then it is asked again, which costs one message, and no batch waits
        for it. Longer: fewer questions, later return to handing over.
    `rest_every`: so many commits in a row, at most, are followed by a round trip of rest; fewer while others
        make use of the rests. In the rest a node that reaches no peer can commit for itself; without one it
        would lose for ever. Each rest costs the batches a round trip.

    The store:

    `store_timeout_s`: how long a call may take while no round trip was measured; later it is a floor under
        what was measured (RFC 6298 has one too: below it, a busy processor looks like a loss). Lower: a lost
        call is noticed sooner, and a slow store is asked twice.
    `timeout_deviations`: a call is lost after the mean and so many deviations of the measured round trips.
    `timeout_growth`: by so much the timeout grows with each loss while nothing was measured, at most to
        `timeout_unmeasured_max_s`: so a store that is farther away than `store_timeout_s` is reached within
        the attempts of one request. With each answer this bound becomes a floor half as high as before: the
        first answers may be lucky ones. Higher: a call that is lost at the start costs more.
    `timeout_s_max`: it is lost after so long in any case, or after twice the mean if that is longer. A few very
        late answers make the deviation so large that a node would stand still for as long. Lower: a call that
        is slow by chance is made twice.
    `error_pause_s`: a pause after an error of the store; it doubles with each, at most to
        `error_pause_max_s`. Longer: fewer messages to a store in trouble, later return.
    `store_attempts`: so many calls in a row may get no answer, then the request gets an indefinite error. More
        outlast a longer silence, and cost a message and a timeout each; with `store_timeout_s` each, they
        should end within a client's patience.
    `error_patience_s`: errors are answered by a new attempt until the pauses after them come to so much: a
        store that refuses for less costs latency, not an error. Just below the time that a client waits:
        an attempt after that helps nobody. With the pauses above it is nine messages for each call.
    `reading_share`: a poll reads back old messages for such a share of the time that an answer may take, then
        it is answered with the keys that were read. More: fuller answers, and later.

    Compaction:

    `failures_max`: so many workers in a row may crash at one task, then it is left alone for a while. More:
        more work is done in vain, by a dozen messages or more each time.
    `revived_after_leases`: for so many leases. Shorter: a task that kills its worker kills more of them;
        longer: more segments wait, which whoever starts meanwhile must read one by one.

    Strategy `leader`:

    `push_period_s`: messages that were numbered are pushed to the followers so often. Longer: fewer messages,
        and polls that are further behind.
    """

    message_worth_s: float = 0.003
    linger_s_max: float = 0.01

    hedge_deviations: float = 3
    hedge_s_min: float = 0.08
    late_s_max: float = 2.0
    rest_every: int = 8

    store_timeout_s: float = 1.0
    timeout_deviations: float = 4
    timeout_growth: float = 4
    timeout_unmeasured_max_s: float = 1.0
    timeout_s_max: float = 4.0
    error_pause_s: float = 0.01
    error_pause_max_s: float = 1.0
    store_attempts: int = 3
    error_patience_s: float = 4.0
    reading_share: float = 0.5

    failures_max: int = 5
    revived_after_leases: float = 8

    push_period_s: float = 0.01

    def __post_init__(self) -> None:
        _require(
            min(self.store_timeout_s, self.error_pause_s) > 0,
            "a time without which nothing is tried again must be positive",
        )
        _require(
            min(self.rest_every, self.store_attempts, self.failures_max) >= 1,
            "a count of commits, attempts or crashes begins with one",
        )
        _require(
            0 <= self.message_worth_s < inf,
            "a message is worth a time, or nothing",
        )
        _require(
            0 <= self.linger_s_max < self.hedge_s_min <= self.late_s_max,
            "a peer that waits for company must not look late, and is passed over for as long as it cost",
        )
        _require(self.hedge_deviations > 0, "half of all batches would go two ways")
        _require(self.timeout_growth > 1, "without growth a store far away is never reached")
        _require(
            self.timeout_unmeasured_max_s <= self.timeout_s_max,
            "what is guessed is no longer than what may be measured",
        )
        _require(
            self.error_pause_s <= self.error_pause_max_s,
            "the first pause after an error is the shortest",
        )
        _require(
            self.error_pause_s <= self.error_patience_s,
            "patience that ends before the first pause does is none",
        )
        _require(
            self.push_period_s >= 0 and 0 <= self.reading_share <= 1,
            "a wait is not negative, and nobody reads for longer than an answer may take",
        )
        _require(
            self.revived_after_leases >= 1,
            "a task that is tried again within a lease may still have its last worker",
        )

    @property
    def lease_s(self) -> float:
        """How long a lease may stand still, in seconds, before its owner counts as crashed.

        Longer than a silent store call with all its attempts, and one more: a live owner that loses one
        answer beats again in time. A longer lease delays the successor of a crashed owner. Never shorter than
        the longest call to a store that is farther away than `store_timeout_s`.
        """
        return max((self.store_attempts + 1) * self.store_timeout_s, self.timeout_unmeasured_max_s)


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(f"pace: {reason}")
