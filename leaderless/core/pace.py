"""The pace of a node, as one value: how long it waits for what, and what it pays to save a message.

Chosen at the root, checked once, passed down. No field matters for safety: whatever `Pace` accepts, the log
is the same, sooner or later, with more messages or fewer. `Limits` bounds how much or how many; `Pace` says
when, and by whom.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one node. All nodes of a log may differ in it. Raises `ValueError` for a bad relation.

    Times are seconds. The price:

    `message_worth_s`: how long a client may wait to save one server message. From it follow whether a batch is
        handed over, and whether waiting for company pays. Higher: fewer messages, later answers.
    `conflict_messages`: what a lost compare-and-set costs beside time, in messages: it and the next one.
    `conflict_round_trips`: what it costs beside that, in round trips: who lost once often loses again, and
        makes others lose. Higher: more is handed over where the store is far away.
    `commit_linger_s`: a wait before a commit, when company is worth it: that much latency, fewer commits.
    `batch_linger_s`: the same before a batch is made. It is shorter, because a commit is still to come.
    `company_luck_min`, `company_try_every`: when fewer of the waits than `company_luck_min` bring company, a
        node gives up waiting, except for one wait in `company_try_every`. That one costs a lone client
        `commit_linger_s` now and then, and notices company that comes again.
    `offsets_linger_s`: a wait before committed offsets are written, when they are durable. Each consumer waits
        for it; each offset that comes meanwhile saves the two messages of a write.
    `lane_overdue_s`: a send that has waited so long gets another lane. Shorter: less waiting behind a batch
        that is stuck, more and smaller commits.

    Estimates:

    `rate_memory_s`: over how long a rate is measured. Longer: steadier, and later to notice a change.
    `rate_observed_s_min`: a rate over less time says nothing, and is taken as over this time.
    `store_guess_s`: the round trip to the store until one was measured.

    Other nodes:

    `hedge_deviations`: a batch whose peer has not answered after the mean and so many deviations of a
        hand-over, or twice the mean, goes another way, too, under the same name, and with it all that wait for
        that peer; later batches pass it over until it has answered. Fewer: less waiting for a peer that is cut
        off, more batches that go two ways, which costs two messages each and makes commits of others fail.
    `patience_deviations`, `patience_means`: a peer is silent after the mean and so many deviations of its
        round trip, or so many means, whichever is less. TCP's four deviations are too few: delays that are
        exponentially distributed exceed them once in a hundred times, and a node that then commits for
        itself makes commits of all others fail. More of either delays a batch whose peer is cut off.
    `patience_s_min`, `patience_s_max`: bounds of that. The lower one costs nothing but latency after a loss;
        a processor that is busy for so long must not look like a loss.
    `patience_store_calls`: how many calls of the store a hand-over may take: one under way, then its own.
    `suspect_patiences`, `suspect_s_max`: a silent peer is left alone for so many patiences, then for twice as
        long at each silence, at most for `suspect_s_max`. Each further question costs one message, and no
        batch waits for it. Longer: fewer questions, later return to handing over.
    `rest_every`, `rest_every_contended`: so many commits in a row are followed by a round trip of rest, fewer
        when others commit more than `contended_per_s` a second. In the rest a node that reaches no peer can
        commit for itself; without one it would lose for ever. Each rest costs the batches a round trip.
    `in_step_deviation`: fewer only where round trips to the store deviate by less than this share of their
        mean. Where they vary, no node loses in step, and the rests cost more than they give. Higher: more
        rests there; 0: no node is ever in step, and cut-off nodes lose for seconds where delays are constant.
    `isolated_after`: so many attempts in a row without an outcome, then batches go alone: the store may
        refuse one of them. Fewer: more small commits after a loss.

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

    message_worth_s: float = 0.005
    conflict_messages: float = 4
    conflict_round_trips: float = 2
    commit_linger_s: float = 0.003
    batch_linger_s: float = 0.001
    company_luck_min: float = 0.02
    company_try_every: int = 32
    offsets_linger_s: float = 0.003
    lane_overdue_s: float = 0.1

    rate_memory_s: float = 1.0
    rate_observed_s_min: float = 0.01
    store_guess_s: float = 0.002

    hedge_deviations: float = 3
    patience_deviations: float = 8
    patience_means: float = 4
    patience_s_min: float = 0.02
    patience_s_max: float = 1.0
    patience_store_calls: float = 4
    suspect_patiences: float = 2
    suspect_s_max: float = 2.0
    rest_every: int = 8
    rest_every_contended: int = 2
    contended_per_s: float = 0.5
    in_step_deviation: float = 0.25
    isolated_after: int = 2

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
            min(self.store_timeout_s, self.rate_memory_s, self.store_guess_s, self.error_pause_s)
            > 0,
            "a time without which nothing is measured or tried again must be positive",
        )
        _require(
            min(self.rest_every, self.rest_every_contended, self.company_try_every) >= 1
            and min(self.isolated_after, self.store_attempts, self.failures_max) >= 1,
            "a count of commits, waits, attempts or crashes begins with one",
        )
        _require(
            0 <= self.batch_linger_s <= self.commit_linger_s,
            "a batch that waits for company still has a commit before it, which waits too",
        )
        _require(
            self.commit_linger_s < self.patience_s_min,
            "a peer that waits for company must not look silent",
        )
        _require(
            0 < self.patience_s_min <= self.patience_s_max <= self.suspect_s_max,
            "a suspect is left alone for at least the patience that it cost",
        )
        _require(self.hedge_deviations > 0, "half of all batches would go two ways")
        _require(self.patience_means >= 1, "an answer that takes the mean is no silence")
        _require(self.suspect_patiences >= 1, "a suspicion that ends at once saves nothing")
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
            min(self.offsets_linger_s, self.push_period_s, self.in_step_deviation) >= 0
            and 0 <= self.reading_share <= 1,
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
