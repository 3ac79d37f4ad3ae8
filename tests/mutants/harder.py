"""Rules whose breach shows in no world of the bench: it takes auditors, strays, late requests, an aftermath."""

from tests.mutants.mutant import Mutant
from tests.mutants.mutants import (
    BUSY,
    COMPACTED,
    COMPACTOR,
    DURABLE,
    REPLICA,
    STALE,
    VIEW,
    WRITER,
)

PENDING = "core.headlog.pending:Pending"
COMMITS = "core.headlog.commits:DurableCommits"

AUDITED = {"auditors": 3, "nodes": 3, "idle_nodes": 2, "recovery_time_s": 10.0}
DEFERRED = AUDITED | {"commits": "deferred", "freshness_ms": 0.0}
FENCED = DEFERRED | {"nemesis": ("fence",), "nemesis_interval_s": 1.0, "time_limit_s": 8.0}
TINY_RUNS = {"seal_entries": 3, "segments_per_run": 2, "rate": 100.0}
REBORN = {
    "nemesis": ("kill", "store"),
    "nemesis_interval_s": 0.3,
    "strays": 100,
    "store_late_s": 3.0,
}
HANDED = {
    "nodes": 4,
    "clients": 4,
    "rate": 300.0,
    "latency_ms": 20,
    "latency_dist": "exponential",
    "freshness_ms": 50.0,
    "combine": True,
    "time_limit_s": 4.0,
    "nemesis": ("slow", "store"),
}
AGAIN = HANDED | {"nemesis": ("loss", "duplicate", "slow"), "nemesis_interval_s": 0.3}
CALM = {"nemesis": (), "rate": 300.0, "time_limit_s": 2.0, "seal_entries": 3, "segments_per_run": 2}
MOVES = {"aftermath": True, "store_value_kib": 0, "time_limit_s": 2.0, "large_kib": 0}
NEVER_STOOD = (
    "tests/unit/test_writer.py::test_a_full_head_that_never_stood_in_the_store_is_not_sealed"
)

HARDER = [
    Mutant(
        "call-numbers-reused",
        "calls of a start have other numbers than those of any other start",
        "core.scheduler:Scheduler.__init__",
        (("self._calls = calls_from", "self._calls = 0"),),
        REBORN,
    ),
    # ---------------------------------------------------------------- committed offsets, deferred
    Mutant(
        "commits-stay-after-a-refusal",
        "committed offsets whose batch was refused are planned again",
        f"{WRITER}._give_up",
        (("yield from self._plan_flush()", "pass"),),
        FENCED,
    ),
    Mutant(
        "commits-stay-after-a-reject",
        "committed offsets whose batch can never get into the log are planned again",
        f"{WRITER}._end",
        (
            (
                "if self.pending.commits:  #",
                "if self.pending.commits and (self._replica.view.has(batch) or self._is_alive(batch)):  #",
            ),
        ),
        FENCED | {"nemesis": ("fence", "slow"), "latency_ms": 50, "nemesis_interval_s": 0.3},
    ),
    Mutant(
        "commits-stay-when-left-alone",
        "committed offsets whose batch is left alone are planned again",
        f"{WRITER}._end",
        (
            (
                "if self.pending.commits:  #",
                "if self.pending.commits and not self._is_alive(batch):  #",
            ),
        ),
        test="tests/unit/test_leaderless.py"
        "::test_committed_offsets_outlive_what_keeps_them_from_the_log[silent]",
    ),
    Mutant(
        "three-commits-a-batch",
        "a batch carries whatever was committed",
        f"{PENDING}.batch",
        (("if commits and commits_size > bytes_max:", "if len(commits) >= 3:"),),
        DEFERRED | {"nemesis": ()},
    ),
    Mutant(
        "run-keeps-the-last-commit",
        "a run keeps the highest committed offset of each key",
        "core.headlog.records:merge",
        (("commits[key] = max(offset, commits.get(key, offset))", "commits[key] = offset"),),
        DEFERRED | TINY_RUNS,
    ),
    Mutant(
        "outline-keeps-the-last-commit",
        "a node that starts takes the highest committed offset of all runs",
        "core.headlog.outline:Outline.add",
        (
            (
                "self.commits[key] = max(offset, self.commits.get(key, offset))",
                "self.commits[key] = offset",
            ),
        ),
        DEFERRED | TINY_RUNS,
    ),
    Mutant(
        "page-keeps-the-last-commit",
        "a page of the index has the highest committed offset of all that is below it",
        "core.headlog.index:distribute",
        (("commits[key] = max(offset, commits.get(key, offset))", "commits[key] = offset"),),
        DEFERRED | TINY_RUNS,
    ),
    Mutant(
        "outline-lowers-a-commit",
        "what the index says lowers no committed offset of a view",
        f"{VIEW}.skip_to",
        (
            (
                "self.committed[key] = max(offset, self.committed.get(key, offset))",
                "self.committed[key] = offset",
            ),
        ),
        DEFERRED | TINY_RUNS | {"nemesis": ("pause",), "nemesis_interval_s": 1.0},
    ),
    # ---------------------------------------------------------------- committed offsets, durable
    Mutant(
        "three-commits-a-write",
        "a write of committed offsets carries all that wait",
        f"{COMMITS}._write",
        (
            (
                "new = self._raised(held, lacking)",
                "new = self._raised(held, dict([*lacking.items()][:3]))",
            ),
        ),
        DURABLE | AUDITED,
    ),
    Mutant(
        "committed-register-lowered",
        "the register of committed offsets is only ever raised",
        "core.headlog.commits:raised",
        (("if at > offsets.get(key, at - 1)", ""),),
        DURABLE | AUDITED,
    ),
    Mutant(
        "unknown-write-acknowledged",
        "a write of committed offsets without an answer is looked for",
        f"{COMMITS}._write",
        (("self._held = new if isinstance(outcome, Ok) else None", "self._held = new"),),
        DURABLE | AUDITED | {"nemesis": ("store", "loss")},
    ),
    Mutant(
        "overtaken-write-acknowledged",
        "a write of committed offsets that met another node's write is made again",
        f"{COMMITS}._write",
        (("if isinstance(outcome, Ok) else None", "if not hasattr(outcome, 'spent') else None"),),
        DURABLE | AUDITED,
    ),
    # ---------------------------------------------------------------- how fresh a view is
    Mutant(
        "older-look-of-a-peer",
        "what a peer looked at before it was asked makes the view no fresher than that",
        f"{WRITER}.commit_for",
        (
            (
                "held_s = self._replica.confirmed_at - came_at",
                "held_s = max(0.0, self._replica.confirmed_at - came_at)",
            ),
        ),
        AGAIN,
        test="tests/unit/test_delivery.py::test_what_a_peer_looked_at_before_it_was_asked_counts_from_then",
    ),
    Mutant(
        "held-until-now",
        "a batch is held until the peer's view was confirmed, not until its answer",
        f"{WRITER}.commit_for",
        (
            (
                "held_s = self._replica.confirmed_at - came_at",
                "held_s = self._clock.now - came_at",
            ),
        ),
        HANDED,
        test="tests/unit/test_delivery.py::test_a_batch_is_held_until_the_peer_asked_the_store_not_until_it_answers",
    ),
    Mutant(
        "answer-beyond-the-view",
        "an answer confirms a view only if the view has all that it shows",
        f"{REPLICA}.learn",
        (("if self.view.slot >= answer.slot + len(answer.entries):", "if True:"),),
        HANDED,
        test="tests/unit/test_replica.py::test_who_is_too_far_behind_for_an_answer_reads_the_store",
    ),
    # ---------------------------------------------------------------- compaction
    Mutant(
        "stale-release",
        "a claim that was lost is not released: another worker has it",
        "core.claims:Holder.release",
        (
            (
                "yield from self._replace(self.held, replace(noted or self.held, owner=None))",
                "from leaderless.core.messages import Put\n"
                "        yield Put(self._register, replace(noted or self.held, owner=None).value)",
            ),
        ),
        STALE,
    ),
    Mutant(
        "index-epoch-kept",
        "a worker raises the index's epoch to its claim's before it changes anything",
        f"{COMPACTOR}._take_over",
        (("index._replace(epoch=self._claims.epoch)", "index"),),
        CALM,
    ),
    Mutant(
        "segments-never-deleted",
        "the segments of a listed run are deleted",
        f"{COMPACTOR}._finish",
        (
            (
                "yield from gather([delete(segment_name(number)) for number in numbers])",
                "pass",
            ),
        ),
        CALM,
    ),
    Mutant(
        "compaction-stops-before-the-cursor",
        "a job that was cut off is finished by the next worker",
        f"{COMPACTOR}._finish",
        (
            (
                "done = yield from self._update(index, index._replace(cursor=index.sealed))",
                "done = index",
            ),
        ),
        CALM | MOVES,
    ),
    Mutant(
        "compaction-gives-up",
        "compaction goes on after workers crashed several times in a row",
        f"{COMPACTOR}._run",
        (
            (
                "yield from self._pause_and_revive()\n                    continue",
                "break",
            ),
        ),
        COMPACTED | MOVES | {"nemesis": ("kill", "store"), "time_limit_s": 8.0, "rate": 30.0},
        test="tests/property/test_compaction.py::test_compaction_goes_on_after_too_many_crashes",
    ),
    Mutant(
        "read-ahead-seals-nothing",
        "a full tail is sealed also when its head was learnt from a read beside the commit",
        f"{WRITER}._try",
        (
            (
                "if tried.new.full:",
                "if fate is Fate.COMMITTED and tried.new.full:",
            ),
        ),
        test=NEVER_STOOD,
    ),
    Mutant(
        "tried-head-sealed",
        "what is sealed stood in the store",
        f"{WRITER}._try",
        (("head = tried.new if fate is Fate.COMMITTED else replica.head", "head = tried.new"),),
        test=NEVER_STOOD,
    ),
    Mutant(
        "sent-back-for-ever",
        "a batch that lost a conflict here and comes again stays until it is in the log",
        f"{WRITER}._settle",
        ((" and not job.stays", ""),),
        test="tests/unit/test_writer.py::test_a_batch_that_was_sent_back_and_comes_again_stays",
    ),
    # ---------------------------------------------------------------- sizes
    Mutant(
        "all-in-one-commit",
        "the batches of a commit have a bound in bytes together",
        f"{WRITER}._eligible",
        (("size > self._replica.limits.commit_bytes", "False"),),
        BUSY | {"commit_kib": 1, "large_kib": 16, "time_limit_s": 2.0},
    ),
    Mutant(
        "whole-log-in-an-answer",
        "a peer that lacks too much reads the store",
        f"{VIEW}._forget_entries",
        (("self._recent_bytes > limits.answer_bytes", "False"),),
        test="tests/unit/test_sizes.py::test_a_peer_that_lacks_too_much_reads_the_store",
    ),
    # ---------------------------------------------------------------- the store
    Mutant(
        "store-timeout-fixed",
        "a store call may take as long as its round trip, measured",
        "core.timeouts:StoreTimeouts.timeout_s",
        (
            ("if not measured.known:", "if True:"),
            ("FAR_S if self._lost else 0.0", "0.0"),
        ),
        {"nodes": 3, "latency_ms": 50, "store_timeout_ms": 20.0, "nemesis": ()},
    ),
    Mutant(
        "refused-without-a-pause",
        "a store that refuses is not asked again at once",
        "core.timeouts:StoreTimeouts.pause_s",
        (("return pause_s", "return 0.0"),),
        {"refusal_code": 11, "refusing_s": 3.0, "latency_ms": 0, "time_limit_s": 4.0},
    ),
]

EQUIVALENT = [
    Mutant(
        "own-cas-not-recognised",
        "a compare-and-set of unknown outcome is recognised by the value that it wrote. Each caller takes the"
        " other answer for another worker that was faster: a claim of its own stands still until its lease is"
        " over, and the next worker finishes the job. So the mutant costs a lease, and breaks no promise",
        "core.coordination:replace",
        (("return unsure and (yield from read_register(register)) == new", "return False"),),
        COMPACTED | MOVES | {"nemesis": ("store", "loss")},
    ),
]
