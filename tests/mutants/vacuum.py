"""Rules of what a vacuum may delete: names that the log gives, and values without a record."""

from tests.mutants.mutant import Mutant

LAW = "tests/unit/test_data_before_reference.py"
SUSPENDED = f"{LAW}::test_a_machine_is_suspended_and_its_clock_too"
LATE = f"{LAW}::test_an_epoch_that_is_learnt_after_the_object_does_not_count"

NAMES = "tests/unit/test_names.py"
THEIRS = f"{NAMES}::test_a_vacuum_leaves_another_log_and_files_of_others"

VACUUM = [
    # ---------------------------------------------------------------- names
    Mutant(
        "name-that-begins-right",
        "a name is parsed whole: one that only begins as ours do is of somebody else",
        "store.names:is_own",
        (("_OWN.fullmatch(key)", "_OWN.match(key)"),),
        test=f"{NAMES}::test_a_name_that_is_nearly_one",
    ),
    Mutant(
        "segment-that-nobody-escapes",
        "what users chose is a segment that we escape, or is of somebody else",
        "store.names:is_own",
        (("all(map(_is_segment, filter(None, found.groups())))", "True"),),
        test=f"{NAMES}::test_a_name_that_is_nearly_one",
    ),
    Mutant(
        "listing-of-all",
        "a log reads and deletes only objects that it can have written",
        "store.calls:own_objects",
        (("if is_own(each.key):", "if True:"),),
        test=THEIRS,
    ),
    Mutant(
        "files-of-others-deleted",
        "a vacuum deletes only files that a log can have written",
        "table.upkeep:Upkeep._listed",
        (("if is_own(each.key) and _is_left", "if _is_left"),),
        test=THEIRS,
    ),
    Mutant(
        "path-taken-as-it-comes",
        "a path in the list of files is one that a log gives",
        "table.manifest:_path",
        (("if is_file(path) and", "if True or"),),
        test="tests/unit/test_table.py::test_what_no_program_writes_is_a_misfit",
    ),
    Mutant(
        "file-that-is-needed-replaced",
        "a file that the log needs does not count as replaced",
        "table.manifest:_require_whole",
        (("if path in needed or", "if"),),
        test="tests/unit/test_table.py::test_what_no_program_writes_is_a_misfit",
    ),
    Mutant(
        "path-out-of-the-folder",
        "no path leaves the folder of a log's files",
        "store.files:FolderFiles._file",
        (("_INSIDE.fullmatch(path) and", ""),),
        test=f"{NAMES}::test_no_file_outside_the_folder_is_touched",
    ),
    Mutant(
        "link-out-of-the-folder",
        "no link leads out of the folder of a log's files",
        "store.files:FolderFiles._file",
        (("inside.is_relative_to(self._folder.resolve())", "True"),),
        test=f"{NAMES}::test_no_file_outside_the_folder_is_touched",
    ),
    Mutant(
        "any-number-of-parts",
        "a page has as many parts as a page can have",
        "core.headlog.index:IndexEntry.can_be",
        (("self.parts in PARTS", "self.parts"),),
        test="tests/unit/test_fsck.py::test_an_index_that_names_more_parts_than_a_page_can_have",
    ),
    # ---------------------------------------------------------------- values
    Mutant(
        "vacuum-without-an-epoch",
        "a vacuum raises the epoch before it reads the references",
        "hosting.vacuum:vacuum_values",
        (("await new_epoch() if old", "(await read_value(store, HEAD, head_of)).value if old"),),
        test=f"{SUSPENDED}[written-append]",
    ),
    Mutant(
        "epoch-raised-before-the-list",
        "a vacuum lists objects before it raises the epoch",
        "hosting.vacuum:vacuum_values",
        (
            (
                "objects = [listed async for listed in own_objects(store, FOLDER)]",
                "raised = await new_epoch()\n"
                "    objects = [listed async for listed in own_objects(store, FOLDER)]",
            ),
            ("await new_epoch() if old", "raised if old"),
        ),
        test=f"{LAW}::test_what_a_vacuum_lists_was_written_before_its_epoch",
    ),
    Mutant(
        "append-in-any-epoch",
        "an append with large values has the epoch that was known before its objects",
        "api.log:Log._append",
        (("await self._epoch_for(drafts) if are_large(drafts) else None", "None"),),
        test=f"{SUSPENDED}[head-append]",
    ),
    Mutant(
        "epoch-learnt-after-the-object",
        "the epoch of an append is known before its objects are written",
        "api.log:Log._append",
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
        "hosting.named:Named._event",
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
        "core.headlog.attempt:raise_epoch",
        (("if head.epoch > first.epoch:", "if head.epoch >= first.epoch:"),),
        test="tests/unit/test_vacuum.py::test_nothing_changes_but_the_epoch",
    ),
]
