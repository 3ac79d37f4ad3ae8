"""What broke the node's first design, put back: each was seen on real processes (docs/mutants.md).

Where no simulation has what it takes, a test does: a line of a certain form, or a request of a stranger.
"""

from tests.mutants.mutant import Mutant

SESSION = "runtime.session:Session"
POLICY = "core.headlog.policy"
BODIES = "wire.bodies"
SIZES = "tests/unit/test_sizes.py"
EDGES = "tests/unit/test_edges.py"
LONG = "tests/unit/test_long_log.py"

FIRST_DESIGN = [
    Mutant(
        "no-company",
        "a batch and a commit wait for company when it saves more messages than it costs time",
        f"{POLICY}:linger_s",
        (("if not rate:", "if True:"),),
        test="tests/simulation/test_messages.py::test_messages_an_operation",
    ),
    Mutant(
        "large-message-taken",
        "a request above `message_bytes` is refused",
        f"{SESSION}._may_ask",
        (("if len(line) > most + room:", "if False:"),),
        test=f"{SIZES}::test_a_message_above_the_limit_is_refused",
    ),
    Mutant(
        "refused-batch-holds-up-others",
        "batches go alone when the store may refuse one of them",
        f"{POLICY}:CommitPolicy.isolates",
        (("return self._unknowns >=", "return False and self._unknowns >="),),
        test="tests/unit/test_timeouts.py::test_a_batch_that_the_store_refuses_holds_up_no_other",
    ),
    Mutant(
        "integer-beyond-64-bits",
        "what cannot be kept as it was sent is refused",
        f"{SESSION}._may_ask",
        (('not keeps(line, body.get("msg"))', "False"),),
        test=f"{SIZES}::test_what_cannot_be_kept_as_it_was_sent_is_refused",
    ),
    Mutant(
        "unkept-without-an-answer",
        "a request that cannot be decoded is answered if it can be",
        f"{SESSION}._refuse_unkept",
        (("src, dest, msg_id = unkept.reply", "return\n        src, dest, msg_id = unkept.reply"),),
        test=f"{SIZES}::test_what_cannot_be_kept_as_it_was_sent_is_refused",
    ),
    Mutant(
        "forged-batch-taken",
        "a batch is handed over by the peer that made it",
        f"{SESSION}._require_own",
        (("if not event", "if False and not event"),),
        test=f"{EDGES}::test_a_forged_batch_is_refused",
    ),
    Mutant(
        "share-of-a-stranger-taken",
        "messages are shown by peers alone",
        f"{SESSION}._told",
        (("if not self._is_peer(src):", "if False:"),),
        test=f"{EDGES}::test_a_share_of_a_stranger_is_dropped",
    ),
    Mutant(
        "deep-batch-taken",
        "a batch with a value that cannot be written is refused",
        f"{BODIES}:_batch",
        (('_check_storable("appends", batch.appends)', "pass"),),
        test=f"{EDGES}::test_what_is_nested_too_deep_is_refused_from_a_peer_too",
    ),
    Mutant(
        "answers-unchecked",
        "a peer's answer is decoded and checked before it comes into the core",
        f"{BODIES}:answer_of",
        (
            ("heading_of(head)", "Heading(**head)"),
            (
                "with suppress(Misfit):",
                "from leaderless.core.messages import Heading\n            if True:",
            ),
        ),
        test=f"{EDGES}::test_a_head_that_makes_no_sense_is_no_answer_of_a_peer",
    ),
    Mutant(
        "silent-read-loses-all",
        "what a start has read is kept when another read of it is silent",
        "core.headlog.replica:Replica._load",
        (
            (
                "if self._outline is None or self._outline.slot < view.slot:",
                "self._segments = {}\n        self.archive._kept.clear()\n        if True:",
            ),
        ),
        test=f"{LONG}::test_a_silent_read_of_a_start_loses_nothing_else",
    ),
    Mutant(
        "all-runs-at-the-start",
        "a start reads pages in place of the runs below them",
        "core.headlog.compaction:Compactor._paged",
        (("count = self._replica.shape.page_children", "return listed\n        count = 0"),),
        test=f"{LONG}::test_a_start_reads_a_bounded_part_of_the_log",
    ),
    Mutant(
        "index-grows-with-the-log",
        "the index has few runs and pages, however long the log",
        "core.headlog.compaction:Compactor._paged",
        (("count = self._replica.shape.page_children", "return listed\n        count = 0"),),
        test=f"{LONG}::test_an_update_of_the_index_does_not_grow_with_the_log",
    ),
    Mutant(
        "nothing-evicted",
        "a view above its share of the memory forgets what is in runs",
        "core.headlog.view:View.evict",
        (("while self._sections and", "while False and self._sections and"),),
        test="tests/unit/test_headlog_memory.py::test_eviction_while_serving",
    ),
    Mutant(
        "run-read-past-the-view",
        "a poll answers what is in its view, and no more",
        "core.headlog.memory:Memory.read",
        ((", view.end(key))", ", 1 << 60)"),),
        test="tests/unit/test_headlog_memory.py"
        "::test_a_run_that_goes_on_after_the_view_is_cut_there",
    ),
    Mutant(
        "small-sends-counted-short",
        "a send that waits counts by the memory that it takes",
        "core.headlog.pending:Pending.add",
        (("event.size + SEND_BYTES", "event.size"),),
        test="tests/unit/test_leaderless.py"
        "::test_small_sends_that_wait_count_by_the_memory_that_they_take",
    ),
]
