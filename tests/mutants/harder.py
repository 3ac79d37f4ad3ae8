"""Rules whose breach shows in no world of the bench: it takes auditors, strays, late requests, an aftermath."""

from tests.mutants.mutant import Mutant
from tests.mutants.mutants import (
    COMMITTER,
    COMPACTED,
    COMPACTOR,
    DURABLE,
    REPLICA,
    STALE,
    VIEW,
)

PRODUCER = "core.headlog.producer:Producer"
COMMITS = "core.headlog.commits:DurableCommits"
LEADERLESS = "core.strategies.leaderless:LeaderlessLog"

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
    "freshness_ms": 0.0,
    "combine": True,
    "nemesis": ("slow", "store"),
}
MOVES = {"aftermath": True, "store_value_kib": 0}

HARDER = [
    Mutant(
        "call-numbers-reused",
        "calls of a start have other numbers than those of any other start",
        "core.scheduler:Scheduler.__init__",
        (("self._calls = calls_from", "self._calls = 0"),),
        REBORN,
    ),
    Mutant(
        "own-call-not-told-from-a-peers",
        "an answer resumes only a call of its own kind",
        "core.scheduler:Scheduler.answer",
        (("if waiting is not None and waiting[1] is type(answer):", "if waiting is not None:"),),
        REBORN,
    ),
    # ---------------------------------------------------------------- committed offsets, deferred
    Mutant(
        "commits-stay-after-a-refusal",
        "committed offsets whose batch was refused are planned again",
        f"{PRODUCER}._give_up",
        (("yield from self._plan_flush()", "pass"),),
        FENCED,
    ),
    Mutant(
        "commits-stay-after-a-reject",
        "committed offsets whose batch can never get into the log are planned again",
        f"{PRODUCER}._produce",
        (
            (
                "self._waiting_bytes += _bytes_of(sends)\n            yield from self._plan_flush()",
                "self._waiting_bytes += _bytes_of(sends)",
            ),
        ),
        FENCED | {"nemesis": ("fence", "slow"), "latency_ms": 50, "nemesis_interval_s": 0.3},
    ),
    Mutant(
        "commits-stay-when-left-alone",
        "committed offsets whose batch is left alone are planned again",
        f"{PRODUCER}._produce",
        (
            (
                "yield from self._plan_flush()  # its clients are gone; its committed offsets ride on",
                "pass",
            ),
        ),
        DEFERRED | {"nemesis": ("store",), "nemesis_targets": "all", "time_limit_s": 8.0},
    ),
    Mutant(
        "three-commits-a-batch",
        "a batch carries whatever was committed",
        f"{PRODUCER}._take_commits",
        (("if commits and size > self._limits.batch_bytes:", "if len(commits) >= 3:"),),
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
        "run-lowers-a-commit",
        "a run that is folded lowers no committed offset",
        f"{VIEW}.fold_run",
        (
            (
                "self.committed[key] = max(offset, self.committed.get(key, offset))",
                "self.committed[key] = offset",
            ),
        ),
        DEFERRED | TINY_RUNS,
    ),
    # ---------------------------------------------------------------- committed offsets, durable
    Mutant(
        "three-commits-a-write",
        "a write of committed offsets carries all that wait",
        f"{COMMITS}._write",
        (
            (
                "new = raised(self._held, offsets)",
                "new = raised(self._held, dict([*offsets.items()][:3]))",
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
    # ---------------------------------------------------------------- how fresh a view is
    Mutant(
        "older-look-of-a-peer",
        "what a peer looked at before it was asked makes the view no fresher than that",
        f"{LEADERLESS}._commit_for",
        (
            (
                "held_s = self._replica.confirmed_at - job.arrived_at",
                "held_s = max(0.0, self._replica.confirmed_at - job.arrived_at)",
            ),
        ),
        HANDED,
    ),
    Mutant(
        "held-until-now",
        "a batch is held until the peer's view was confirmed, not until its answer",
        f"{LEADERLESS}._commit_for",
        (
            (
                "held_s = self._replica.confirmed_at - job.arrived_at",
                "held_s = self._clock.now - job.arrived_at",
            ),
        ),
        HANDED,
    ),
    Mutant(
        "answer-beyond-the-view",
        "an answer confirms a view only if the view has all that it shows",
        f"{REPLICA}.learn",
        (("if self.view.slot >= answer.slot + len(answer.entries):", "if True:"),),
        HANDED,
    ),
    # ---------------------------------------------------------------- compaction
    Mutant(
        "stale-release",
        "a claim that was lost is not released: another worker has it",
        "core.lease:Lease.release",
        (
            (
                'yield from self._replace(self.held, self.held | notes | {"owner": None})',
                "from leaderless.core.messages import Put\n"
                '        yield Put(self._register, self.held | notes | {"owner": None})',
            ),
        ),
        STALE,
    ),
    Mutant(
        "index-epoch-kept",
        "a worker raises the index's epoch to its claim's before it changes anything",
        f"{COMPACTOR}._take_over",
        (
            (
                "return (yield from self._update(old, index._replace(epoch=self._claims.epoch)))",
                "return index",
            ),
        ),
        COMPACTED,
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
        COMPACTED,
    ),
    Mutant(
        "compaction-stops-before-the-cursor",
        "a job that was cut off is finished by the next worker",
        f"{COMPACTOR}._finish",
        (
            (
                "yield from self._update(index, index._replace(cursor=listed.last + 1))",
                "pass",
            ),
        ),
        COMPACTED | MOVES,
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
        COMPACTED | MOVES | {"nemesis": ("kill", "store", "pause"), "time_limit_s": 8.0},
    ),
    Mutant(
        "read-ahead-seals-nothing",
        "a full tail is sealed also when its head was learnt from a read beside the commit",
        f"{COMMITTER}._replace",
        (
            (
                "if isinstance(outcome, Ok) and new.full(self._limits):",
                "if isinstance(outcome, Ok) and new.full(self._limits) and replica.head is old:",
            ),
        ),
        MOVES | {"latency_ms": 50, "latency_dist": "constant", "nodes": 2, "nemesis": ()},
    ),
    # ---------------------------------------------------------------- the store
    Mutant(
        "store-timeout-fixed",
        "a store call may take as long as its round trip, measured",
        "core.timeouts:StoreTimeouts.timeout_s",
        (("if self._mean_s is None:", "if True:"),),
        {"nodes": 3, "latency_ms": 50, "store_timeout_ms": 20.0, "nemesis": ()},
    ),
    Mutant(
        "refused-without-a-pause",
        "a store that refuses is not asked again at once",
        "core.timeouts:StoreTimeouts.pause_s",
        (("return min(self._first_s,", "return 0.0 * min(self._first_s,"),),
        {"refusal_code": 11, "refusing_s": 3.0, "latency_ms": 0, "time_limit_s": 4.0},
    ),
    Mutant(
        "all-in-one-commit",
        "the batches of a commit have a bound in bytes together",
        f"{COMMITTER}._eligible",
        (("size > self._limits.commit_bytes", "False"),),
        {"large_kib": 31, "message_kib": 32, "rate": 300.0, "nodes": 5, "latency_ms": 50},
    ),
    Mutant(
        "whole-log-in-an-answer",
        "a peer that lacks too much reads the store",
        f"{VIEW}.fits_answer",
        (("return len(entries) <= 1 or size <= self._limits.answer_bytes", "return True"),),
        {"large_kib": 31, "message_kib": 32, "seal_bytes": 1024, "segments_per_run": 2}
        | {"nodes": 4, "nemesis": ("pause",), "combine": True, "rate": 300.0, "latency_ms": 20},
    ),
]
