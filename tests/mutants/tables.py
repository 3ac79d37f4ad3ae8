"""Rules of the table and of Spark's source and sink, each with the test that fails where it is broken."""

from tests.mutants.mutant import Mutant

ANSWERS = "tests/unit/test_table_answers.py"
EPOCHS = "tests/unit/test_spark_epochs.py"
RACES = "tests/unit/test_table_races.py"
READING = "tests/unit/test_spark_reading.py"
RETENTION = "tests/unit/test_retention.py"
PREFIX = f"{RACES}::test_a_snapshot_is_a_prefix_whatever_moves_between_its_reads"
CHAIN = "tests/unit/test_chain.py::test_a_reader_misses_nothing_whatever_moves_between_its_reads"
TABLE_READ = "        manifest, _ = await read_manifest(store)\n"
TAIL_READ = "        index, head, segments = await read_tail(store, segments_max)\n"

TABLES = [
    # ---------------------------------------------------------------- the sink
    Mutant(
        "plan-ignored-when-empty",
        "an epoch that has a plan is finished by it, whatever the repeated write brings",
        "spark.epochs:_finish",
        (("plan = await planned(store, epoch)", "plan = parts and await planned(store, epoch)"),),
        test=f"{EPOCHS}::test_a_load_that_was_killed_is_finished_by_its_plan_even_by_an_empty_frame",
    ),
    Mutant(
        "plan-made-anew",
        "an epoch that is in the log in part, and whose plan is gone, is refused",
        "spark.epochs:_finish",
        (("if plan is None and begun:", "if False:"),),
        test=f"{EPOCHS}::test_a_load_whose_plan_is_gone_is_refused[with rows]",
    ),
    Mutant(
        "earlier-plan-deleted",
        "an earlier epoch that has a plan is finished before it is cleared",
        "spark.epochs:commit",
        (("await _finish(log, store, earlier, ())", "pass"),),
        test=f"{EPOCHS}::test_an_epoch_that_was_left_half_done_is_finished_before_the_next",
    ),
    Mutant(
        "empty-epoch-cleared",
        "nothing of an epoch is deleted before its last batch is in the log",
        "spark.epochs:commit",
        (
            (
                "if await _finish(log, store, epoch, parts):",
                "if [await _finish(log, store, epoch, parts)]:",
            ),
        ),
        test=f"{EPOCHS}::test_an_empty_epoch_deletes_nothing_that_another_driver_may_plan",
    ),
    Mutant(
        "plan-grouped-anew",
        "the batches of a plan are a function of it alone, in every release",
        "spark.staging:groups",
        (("pc.add(sizes, ROW_BYTES)", "pc.add(sizes, 0)"),),
        test="tests/unit/test_spark_epochs.py::test_the_groups_of_rows_are_part_of_the_format",
    ),
    Mutant(
        "message-needed",
        "a write of a frame looks for its own plan, also without a message of any task",
        "spark.sink:BatchSink.commit",
        (("self._target.commit(", "_parts(messages) and self._target.commit("),),
        test=f"{EPOCHS}::test_a_write_without_any_message_looks_for_its_own_plan",
    ),
    Mutant(
        "huge-integer-in-a-text",
        "a text of JSON that would not come back as it is, is refused",
        "store.values:json_of",
        (("if not kept:", "if False:"),),
        test="tests/unit/test_registers.py::test_an_integer_beyond_64_bits_is_refused",
    ),
    # ---------------------------------------------------------------- the source
    Mutant(
        "gap-in-a-stream",
        "a stream that lags behind a retention is told",
        "spark.positions:require_start",
        (("if position < start:", "if False:"),),
        test=f"{READING}::test_a_stream_that_lags_behind_a_retention_is_told",
    ),
    Mutant(
        "gap-in-a-slice",
        "what a retention takes between plan and read is told",
        "spark.reading:_of_slots",
        (("if slots.first < found.start:", "if False:"),),
        test=f"{READING}::test_what_a_retention_takes_between_plan_and_read_is_told",
    ),
    # ---------------------------------------------------------------- snapshots
    Mutant(
        "table-read-after-the-tail",
        "the list of files is read before the index: a file of runs that it does not have holds its tail again",
        "table.snapshot:snapshot",
        ((TABLE_READ + TAIL_READ, TAIL_READ + TABLE_READ),),
        test=PREFIX,
    ),
    Mutant(
        "tail-counted-twice",
        "what the head has in its tail, and a newer index in runs, is in a snapshot once",
        "table.snapshot:snapshot",
        (("base = max(head.base, index.end)", "base = head.base"),),
        test=CHAIN,
    ),
    Mutant(
        "older-index-kept",
        "when a segment is gone, the index that was read then has the run of it",
        "store.chain:read_tail",
        (("return newer or index, head", "return index, head"),),
        test=CHAIN,
    ),
    Mutant(
        "gone-segment-passed-over",
        "a segment that is gone is looked for in the index",
        "core.headlog.chain:sealed_below",
        (
            ("if None in parts:", "if False:"),
            ("found += parts", "found += [part for part in parts if part is not None]"),
        ),
        test=CHAIN,
    ),
    Mutant(
        "values-of-left-files-deleted",
        "a file that has left the log, and still stands, refers to its large values",
        "table.snapshot:file_references",
        (("reads += [", "[*reads] + ["),),
        test=f"{RETENTION}::test_large_values_stay_as_long_as_a_file_refers_to_them",
    ),
    # ---------------------------------------------------------------- merges and retention
    Mutant(
        "oldest-row-group-counts",
        "a file is as old as its newest record",
        "table.retention:_newest",
        (("return max(", "return min("),),
        test=f"{RETENTION}::test_by_age_the_newest_record_of_all_row_groups_counts",
    ),
    Mutant(
        "starts-forgotten",
        "a retention remembers which records an earlier one has deleted",
        "table.retention:_starts",
        (("starts = read_starts(files, manifest)", "starts = {}"),),
        test=f"{RETENTION}::test_a_second_retention_remembers_what_the_first_one_deleted",
    ),
    Mutant(
        "merge-of-an-older-claim",
        "a worker whose claim is older than the list of files leaves it alone",
        "table.upkeep:Upkeep._taken",
        (("if manifest.epoch != self._claims.epoch:", "if False:"),),
        test=f"{RACES}::test_a_worker_whose_claim_is_older_than_the_list_merges_nothing",
    ),
    Mutant(
        "replaced-files-are-orphans",
        "a file that was replaced stays for the retention of readers, however old it is",
        "table.upkeep:Upkeep.vacuum",
        ((" | {each.path for each in manifest.replaced}", ""),),
        test=f"{RACES}::test_a_file_that_was_replaced_lately_stays_however_old_it_is",
    ),
    Mutant(
        "orphans-deleted-first",
        "an orphan is deleted when no worker can name it any more",
        "table.upkeep:Upkeep.vacuum",
        (
            (
                "await in_thread(partial(self._files.delete, replaced))",
                "await in_thread(partial(self._files.delete, replaced + [each.key for each in orphans]))",
            ),
        ),
        test=f"{RACES}::test_a_vacuum_that_comes_too_late_deletes_no_file_that_was_named_meanwhile",
    ),
    Mutant(
        "run-not-read-back",
        "the index names a run whose file holds it",
        "table.runs:create_run",
        (("if found != content and", "if False and"),),
        test=f"{ANSWERS}::test_compaction_lists_no_run_that_it_has_not_read_back",
    ),
    Mutant(
        "large-run-written-over-another",
        "a file of a run that is there is left as it is",
        "table.runs:create_run",
        (("if len(content) <= WHOLE_BYTES_MAX or", "if True or"),),
        test=f"{ANSWERS}::test_a_large_run_is_not_written_over_another_one",
    ),
    # ---------------------------------------------------------------- answers
    Mutant(
        "range-asked-once",
        "a range of a file that comes back cut off is asked for again",
        "table.parquet:again",
        (("for _ in range(DAMAGED_MAX - 1):", "for _ in []:"),),
        test=f"{ANSWERS}::test_a_damaged_range_is_asked_for_again",
    ),
    Mutant(
        "footer-read-once",
        "what makes no sense in a file is read again",
        "table.parquet:sensible",
        (("return again(read, SENSELESS)", "return read()"),),
        test=f"{ANSWERS}::test_a_damaged_range_is_asked_for_again",
    ),
]
