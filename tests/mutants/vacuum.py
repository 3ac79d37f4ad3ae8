"""Rules that keep the values of records from a vacuum (`DataBeforeReference`), and one of named batches."""

from tests.mutants.mutant import Mutant

LAW = "tests/unit/test_data_before_reference.py"
SUSPENDED = f"{LAW}::test_a_machine_is_suspended_and_its_clock_too"
LATE = f"{LAW}::test_an_epoch_that_is_learnt_after_the_object_does_not_count"

VACUUM = [
    Mutant(
        "vacuum-without-an-epoch",
        "a vacuum raises the epoch before it reads the references",
        "library.vacuum:vacuum_values",
        (("await new_epoch() if old", "(await read_value(store, HEAD, head_of)).value if old"),),
        test=f"{SUSPENDED}[written-append]",
    ),
    Mutant(
        "epoch-raised-before-the-list",
        "a vacuum lists objects before it raises the epoch",
        "library.vacuum:vacuum_values",
        (
            (
                "objects = [listed async for listed in all_of(store, FOLDER)]",
                "raised = await new_epoch()\n"
                "    objects = [listed async for listed in all_of(store, FOLDER)]",
            ),
            ("await new_epoch() if old", "raised if old"),
        ),
        test=f"{LAW}::test_what_a_vacuum_lists_was_written_before_its_epoch",
    ),
    Mutant(
        "runs-before-segments",
        "references are read where entries move, in that order: head, segments, runs",
        "library.vacuum:references",
        (
            (
                '[("segment", segment_of), ("run", run_of)]',
                '[("run", run_of), ("segment", segment_of)]',
            ),
        ),
        test="tests/unit/test_vacuum.py::test_a_compaction_while_references_are_read_hides_none",
    ),
    Mutant(
        "append-in-any-epoch",
        "an append with large values has the epoch that was known before its objects",
        "library.log:Log._append",
        (("await self._epoch_for(drafts) if are_large(drafts) else None", "None"),),
        test=f"{SUSPENDED}[head-append]",
    ),
    Mutant(
        "epoch-learnt-after-the-object",
        "the epoch of an append is known before its objects are written",
        "library.log:Log._append",
        (
            (
                "epoch = await self._epoch_for(drafts) if are_large(drafts) else None\n"
                "        messages = await self.data.messages(drafts)",
                "messages = await self.data.messages(drafts)\n"
                "        epoch = await self._epoch_for(drafts) if are_large(drafts) else None",
            ),
        ),
        test=f"{LATE}[append]",
    ),
    Mutant(
        "send-of-an-old-epoch-taken",
        "a send whose epoch is over goes into no batch",
        "core.headlog.pending:refusal_of",
        (("if event.epoch not in (None, head.epoch):", "if False:"),),
        test=f"{LAW}::test_a_send_is_refused_when_its_batch_was_rejected_by_a_new_epoch",
    ),
    Mutant(
        "named-batch-moved-to-a-new-epoch",
        "a named batch with large values gets objects of its own in a new epoch",
        "core.headlog.writer:Writer._append_named",
        (
            (
                "if failure := refusal_of(event, replica.limits, replica.head):",
                "batch = batch._replace(epoch=replica.head.epoch)\n            if failure := None:",
            ),
        ),
        test=f"{SUSPENDED}[head-append_named]",
    ),
    Mutant(
        "named-epoch-learnt-after-the-object",
        "the epoch of a named batch is known before its objects are written",
        "library.named:Named._event",
        (
            (
                "return lambda request:",
                "epoch = await self._epoch_for(drafts)\n        return lambda request:",
            ),
        ),
        test=f"{LATE}[append_named]",
    ),
    Mutant(
        "named-without-a-look-into-the-view",
        "a named batch that is in the log is appended, also when the log is fenced now",
        "core.headlog.writer:Writer._append_named",
        (
            (
                "while not replica.view.has(batch):",
                "while replica.head.fenced or not replica.view.has(batch):",
            ),
        ),
        test="tests/unit/test_named.py::test_a_fence_refuses_it_until_it_is_lifted",
    ),
    Mutant(
        "epoch-of-another-call",
        "an epoch is raised after the objects were listed, by whomever",
        "core.headlog.epoch:raise_epoch",
        (("if head.epoch > first.epoch:", "if head.epoch >= first.epoch:"),),
        test="tests/unit/test_vacuum.py::test_nothing_changes_but_the_epoch",
    ),
]
