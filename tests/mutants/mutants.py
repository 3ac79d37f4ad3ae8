"""The rules of the leaderless log, each broken in one place."""

from tests.mutants.mutant import Mutant

ATTEMPT = "core.headlog.attempt"
WRITER = "core.headlog.writer:Writer"
REPLICA = "core.headlog.replica:Replica"
VIEW = "core.headlog.view:View"
CONSUMER = "core.headlog.consumer:ConsumerService"
COMPACTOR = "core.headlog.compaction:Compactor"


# A batch that is not in the log yet gets another name (its next number stays free).
RENAME = "job.batch = job.batch._replace(seq=job.batch.seq + 1)"
DEFERRED = {"commits": "deferred"}
DURABLE = {"commits": "durable", "nodes": 3, "nemesis": ("kill",), "nemesis_interval_s": 0.3}
# Worlds in which something is frequent.
BUSY = {"nodes": 4, "clients": 4, "rate": 300.0, "latency_ms": 20, "latency_dist": "exponential"}
UNSURE = {"nemesis": ("loss", "store"), "nemesis_interval_s": 0.3}
FENCED = {"nemesis": ("slow", "store", "fence"), "nemesis_interval_s": 0.3}
COMPACTED = {
    "nodes": 5,
    "seal_entries": 3,
    "segments_per_run": 2,
    "nemesis": ("kill", "store"),
    "nemesis_interval_s": 0.3,
    "nemesis_targets": "one",
}
# A batch that was handed over is still on its way when the log is fenced and open again.
HURRIED = {
    "nodes": 4,
    "clients": 4,
    "rate": 300.0,
    "time_limit_s": 8.0,
    "latency_ms": 50,
    "latency_dist": "exponential",
    "combine": True,
    "nemesis": ("slow", "fence"),
    "nemesis_interval_s": 0.1,
    "nemesis_targets": "minority",
}
# A worker stands still for longer than its lease, is taken for dead, and comes back.
STALE = {
    "nodes": 3,
    "clients": 2,
    "rate": 60.0,
    "time_limit_s": 20.0,
    "latency_ms": 20,
    "latency_dist": "exponential",
    "store_timeout_ms": 100.0,
    "seal_entries": 3,
    "segments_per_run": 2,
    "nemesis": ("pause",),
    "nemesis_interval_s": 1.0,
    "nemesis_targets": "one",
    "recovery_time_s": 20.0,
}


MUTANTS = [
    # ---------------------------------------------------------------- exactly once
    Mutant(
        "dedup-skipped",
        "a committer adds a batch only if the log does not hold it",
        f"{WRITER}._eligible",
        (("                or self._replica.view.has(batch)\n", ""),),
        UNSURE,
    ),
    Mutant(
        "ack-before-commit",
        "a batch is done when the view contains it",
        f"{VIEW}.has",
        (("return self.writers.get(batch.writer, -1) >= batch.seq", "return True"),),
    ),
    Mutant(
        "unknown-is-success",
        "only an acknowledged compare-and-set counts as a commit",
        f"{ATTEMPT}:carry_out",
        (("if isinstance(outcome, Ok):", "if outcome is not None:"),),
    ),
    Mutant(
        "unknown-is-failure",
        "a batch without an answer is looked for before its sends are tried anew",
        f"{WRITER}._settle",
        (
            (
                "yield Spawn(self._carry(job))",
                "self._idle.append(job.batch.writer); self.pending.put_back(job.waiting or [])",
            ),
        ),
        UNSURE | {"combine": True},
    ),
    Mutant(
        "new-id-after-commit-failed",
        "a batch that is tried again keeps its [writer, seq]",
        f"{WRITER}._settle",
        (("yield Spawn(self._carry(job))", f"{RENAME}; yield Spawn(self._carry(job))"),),
        # Without handing over it cannot matter: a batch stays here until it is in the log, or too late.
        UNSURE | {"combine": True},
    ),
    Mutant(
        "new-id-after-hand-over",
        "a batch that was handed over in vain is committed under its own [writer, seq]",
        f"{WRITER}._carry",
        (
            (
                "yield from self._hand_overs.hand_to(peer, job.batch)",
                "yield from self._hand_overs.hand_to(peer, job.batch)\n"
                f"            if not self._replica.view.has(job.batch): {RENAME}",
            ),
        ),
    ),
    Mutant(
        "answer-is-commit",
        "a peer's answer proves nothing unless it brings the batch's entry",
        f"{WRITER}._carry",
        (
            (
                "yield from self._hand_overs.hand_to(peer, job.batch)",
                "yield from self._hand_overs.hand_to(peer, job.batch)\n"
                "            yield from self._acknowledge(job.batch, job.waiting or ())\n"
                "            return",
            ),
        ),
    ),
    Mutant(
        "writer-reused",
        "a restarted node is a new writer",
        "runtime.session:Session._init",
        (('f"{node}.{self._incarnation}"', "node"),),
    ),
    # ---------------------------------------------------------------- one order
    Mutant(
        "blind-put",
        "the head is replaced by compare-and-set from the very head that was read",
        f"{ATTEMPT}:carry_out",
        (
            (
                "cas = Cas(HEAD, was, new.value, create=was is None)",
                "from leaderless.core.messages import Put\n    cas = Put(HEAD, new.value)",
            ),
        ),
    ),
    Mutant(
        "offsets-per-batch",
        "a batch takes as many offsets of a key as it has messages",
        f"{ATTEMPT}:_entry",
        (("ends[key] = first + len(msgs)", "ends[key] = first + 1"),),
        BUSY,
    ),
    Mutant(
        "older-head-taken",
        "an answer about an older head changes nothing",
        f"{REPLICA}._follow",
        (("if head.version <= self.head.version:", "if head.version == self.head.version:"),),
    ),
    Mutant(
        "entries-reversed",
        "entries are folded in the order of their slots",
        f"{VIEW}.fold",
        (("self._require_next(new)", "new = new[::-1]"),),
    ),
    # ---------------------------------------------------------------- fencing
    Mutant(
        "fence-ignored",
        "nothing is added to a fenced head",
        f"{WRITER}._eligible",
        ((" or not self._is_alive(batch)", ""),),
    ),
    Mutant(
        "epoch-ignored",
        "a batch is committed in its own epoch or never",
        f"{WRITER}._eligible",
        (("not self._is_alive(batch)", "self._replica.head.fenced"),),
        HURRIED,
    ),
    Mutant(
        "epoch-kept",
        "every fence raises the epoch",
        "core.headlog.records:Head.with_state",
        (("epoch=self.epoch + 1", "epoch=self.epoch"),),
        BUSY | FENCED,
    ),
    Mutant(
        "old-batch-kept-alive",
        "a batch of an older epoch is given up, and its sends go into a new one",
        f"{WRITER}._is_alive",
        (("return head.epoch == batch.epoch and not head.fenced", "return not head.fenced"),),
        BUSY | FENCED,
    ),
    Mutant(
        "switch-of-unknown-outcome",
        "a fence is done when the compare-and-set is known to have replaced the head",
        "core.strategies.leaderless:LeaderlessLog._set_state",
        (("if isinstance(outcome, Ok):", "if outcome is not None:"),),
        BUSY | FENCED,
    ),
    # ---------------------------------------------------------------- segments and runs
    Mutant(
        "seal-skipped",
        "a segment is written before the head lets go of its entries",
        f"{WRITER}._seal",
        (("yield from self._sealer.seal(head)", "pass"),),
    ),
    Mutant(
        "seal-cut-short",
        "a segment holds the whole tail",
        "core.headlog.sealer:Sealer._write",
        (("Segment(head.base, head.tail)", "Segment(head.base, head.tail[:-1])"),),
    ),
    Mutant(
        "delete-before-listing",
        "a segment is deleted only when its run is written and listed",
        f"{COMPACTOR}._write",
        (
            (
                "run = merge(segments)",
                "run = merge(segments)\n"
                "            numbers = range(first, first + len(segments))\n"
                "            yield from gather([delete(segment_name(number)) for number in numbers])",
            ),
        ),
    ),
    Mutant(
        "run-without-writers",
        "a run keeps how far each writer had come",
        f"{VIEW}.skip_to",
        (("self.writers[writer] = max(seq, self.writers.get(writer, seq))", "pass"),),
        COMPACTED,
    ),
    Mutant(
        "index-newer-than-head",
        "a run beyond the head that was read is not folded",
        f"{REPLICA}._read_outline",
        (("if index.end > head.base:", "if False:"),),
        COMPACTED | {"rate": 300.0},
    ),
    Mutant(
        "stale-worker-takes-over",
        "a worker whose claim is older than the index's leaves it alone",
        f"{COMPACTOR}._take_over",
        (("if index.epoch >= self._claims.epoch:", "if False:"),),
        STALE,
    ),
    Mutant(
        "page-without-a-child",
        "a page says for every child which offsets it holds",
        f"{COMPACTOR}._write_page",
        (
            (
                "for place, child in enumerate(children)",
                "for place, child in [*enumerate(children)][1:]",
            ),
        ),
        COMPACTED,
    ),
    Mutant(
        "page-before-it-is-written",
        "a page is written before the index names it",
        f"{COMPACTOR}._write_page",
        (("yield from self._holds(page.register(part), draft)", "pass"),),
        COMPACTED,
    ),
    Mutant(
        "evicted-beyond-the-runs",
        "a view forgets only what is in runs",
        f"{VIEW}.evict",
        (("self._sections[0].end <= slot", "True"),),
        COMPACTED | {"memory_kib": 1},
    ),
    Mutant(
        "key-in-the-wrong-part",
        "a key stands in the part of a page that its hash says",
        "core.headlog.index:distribute",
        (
            (
                "drafts[part_of(key, parts)].keys.setdefault",
                "drafts[min(drafts)].keys.setdefault",
            ),
        ),
        COMPACTED | {"key_count": 10},
    ),
    Mutant(
        "index-put",
        "the index of runs is replaced by compare-and-set from the one that was read",
        f"{COMPACTOR}._update",
        (
            (
                "if not (yield from replace(COMPACTED, old.value, new.value)):",
                "from leaderless.core.messages import Ok, Put\n"
                "        if not isinstance((yield Put(COMPACTED, new.value)), Ok):",
            ),
        ),
        STALE,
    ),
    Mutant(
        "claim-in-the-old-epoch",
        "every claim has an epoch of its own",
        "core.claims:Holder.take",
        (("epoch=found.epoch + 1", "epoch=found.epoch or 1"),),
        COMPACTED,
    ),
    Mutant(
        "claim-of-the-living",
        "a lease is taken from its owner only when its register has stood still",
        "core.claims:Holder.seek",
        (("yield Sleep(self._clock.now + self._lease_s)", "yield Sleep(self._clock.now)"),),
        COMPACTED,
    ),
    # ---------------------------------------------------------------- reads
    Mutant(
        "confirmed-when-answered",
        "a view is as fresh as when the store was asked, not as when it answered",
        f"{REPLICA}._refresh",
        (("self._confirm(asked_at)", "self._confirm(self._clock.now)"),),
    ),
    Mutant(
        "confirmed-when-handed-back",
        "a peer's answer is as fresh as the peer's own last look at the store",
        f"{REPLICA}.learn",
        (("self._confirm(asked_at + answer.held_s)", "self._confirm(self._clock.now)"),),
        BUSY | {"freshness_ms": 50.0, "nemesis": ("slow", "store"), "combine": True},
    ),
    Mutant(
        "older-read-joined",
        "a poll waits for a read that began within its freshness bound",
        f"{CONSUMER}._freshen",
        (
            (
                "while self._replica.confirmed_at < oldest:",
                "if self._replica.confirmed_at < oldest:",
            ),
            ("reading is None or reading.since < oldest", "reading is None"),
        ),
        BUSY | {"freshness_ms": 0.0},
    ),
    Mutant(
        "poll-skips",
        "a poll begins at the offset that was asked for",
        f"{VIEW}.read",
        (("start = max(0, offset) - first", "start = max(0, offset) - first + 1"),),
    ),
    # ---------------------------------------------------------------- deadlines
    Mutant(
        "answered-late",
        "nothing is sent to a client whose patience is over",
        "core.machine:Answers.allow",
        (("return left > 0", "return True"),),
        {"nemesis": ("store",), "nemesis_targets": "all", "nemesis_interval_s": 3.0},
    ),
    # ---------------------------------------------------------------- committed offsets
    Mutant(
        "commit-of-a-key-lost",
        "an entry carries the committed offset of every key",
        f"{VIEW}._fold",
        (("for key, offset in commits.items():", "for key, offset in [*commits.items()][1:]:"),),
        DEFERRED,
    ),
    Mutant(
        "commit-goes-back",
        "a committed offset is only ever raised",
        f"{VIEW}._fold",
        (("if offset > self.committed.get(key, -1):", "if key:"),),
        DEFERRED,
    ),
    Mutant(
        "acknowledged-before-written",
        "a committed offset is in the store before it is acknowledged",
        "core.headlog.commits:DurableCommits.commit",
        (("yield Wait(group.done)", "pass"),),
        DURABLE,
    ),
    Mutant(
        "committed-register-replaced",
        "a committed offset goes into what the register held, also of a former life",
        "core.headlog.commits:DurableCommits._write",
        (
            ("(yield from read_as(register, committed_of))", "None"),
            (
                "Cas(register, old and old.value, new.value, create=not old)",
                "Put(register, new.value)",
            ),
            (
                "register, patience = self._own, Patience()",
                "from leaderless.core.messages import Put\n"
                "        register, patience = self._own, Patience()",
            ),
        ),
        DURABLE,
    ),
    Mutant(
        "commits-dropped-too-early",
        "a committed offset leaves its register when it is in the log",
        "core.headlog.commits:DurableCommits._raised",
        (("kept = self._beyond_log(held.offsets)", "kept = {}"),),
        DURABLE,
    ),
    Mutant(
        "commits-of-one-register",
        "the committed offset of a key is the highest through any node",
        "core.headlog.commits:DurableCommits.read",
        (("commit_registers(self._replica.shape)", "[self._own]"),),
        DURABLE,
    ),
]
