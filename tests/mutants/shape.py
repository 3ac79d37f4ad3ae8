"""Rules that keep a log whole although the processes that share it differ."""

from tests.mutants.mutant import Mutant

TESTS = "tests/unit/test_shape.py"
HEAD_TESTS = "tests/unit/test_head.py"
SEALER = "core.headlog.sealer:Sealer"
COMPACTOR = "core.headlog.compaction:Compactor"
WRITER = "core.headlog.writer:Writer"
COMMITS = "core.headlog.commits:DurableCommits"

SHAPE = [
    Mutant(
        "segment-taken-for-own",
        "a segment that is there is read back before the head lets go of what it holds",
        f"{SEALER}._write",
        (
            (
                "if not (yield from create(name, segment.value)):",
                "yield from create(name, segment.value)\n        if False:",
            ),
        ),
        test=f"{TESTS}::test_a_segment_of_a_shorter_tail_frees_its_own_entries_alone",
    ),
    Mutant(
        "segment-of-other-entries",
        "a segment that holds other entries than the head is no segment of it",
        f"{SEALER}._write",
        (("held != segment or not", "not"),),
        test=f"{TESTS}::test_a_segment_with_other_entries_is_no_segment_of_this_head",
    ),
    Mutant(
        "whole-tail-let-go",
        "the head keeps what its segment lacks",
        "core.headlog.records:Head.with_entries",
        (("rest = self.tail[kept:]", "rest, kept = [], len(self.tail)"),),
        test=f"{HEAD_TESTS}::test_the_head_keeps_what_its_segment_lacks",
    ),
    Mutant(
        "shape-may-change",
        "a log keeps its shape",
        "core.headlog.replica:Replica._require_shape",
        (("if old.version and head.shape != old.shape:", "if False:"),),
        test=f"{TESTS}::test_a_log_keeps_its_shape",
    ),
    Mutant(
        "open-tail-sealed",
        "a tail that may grow is not sealed",
        f"{SEALER}._write",
        (("if not head.full:", "if False:"),),
        test=f"{TESTS}::test_a_tail_that_may_grow_is_not_sealed",
    ),
    Mutant(
        "registers-of-the-peers",
        "how many registers of offsets there are stands in the log",
        f"{COMMITS}.read",
        (
            (
                "commit_registers(self._replica.shape)",
                "[f'committed/{n}' for n in range(self._place + 1)]",
            ),
        ),
        test=f"{TESTS}::test_committed_offsets_stay_when_the_number_of_nodes_changes",
    ),
    Mutant(
        "offsets-before-the-log",
        "the log is made before an offset is committed: else another may make it with fewer registers",
        f"{COMMITS}._write",
        (("yield from self._replica.found()", "yield from self._replica.refresh()"),),
        test=f"{TESTS}::test_before_there_is_a_head_nobody_commits_into_a_register_that_others_may_not_read",
    ),
    Mutant(
        "part-taken-for-own",
        "the index names a part of a page only if it holds what it must",
        f"{COMPACTOR}._holds",
        (
            (
                "if (yield from create(register, part.value)):",
                "yield from create(register, part.value)\n        if True:",
            ),
        ),
        test=f"{TESTS}::test_a_part_that_holds_something_else_is_never_named",
    ),
    Mutant(
        "too-large-for-the-log",
        "a message that the registers of the log have no room for is refused",
        "core.headlog.pending:refusal_of",
        (("if event.size > (most := largest(limits)):", "if event.size > (most := 1 << 60):"),),
        test="tests/unit/test_sizes.py::test_a_message_without_room_in_the_registers_of_the_log_is_refused",
    ),
]
