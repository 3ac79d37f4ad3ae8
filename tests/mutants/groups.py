"""Rules of groups of consumers, and one of the committer. Each is found by a test."""

from tests.mutants.mutant import Mutant

OWNERSHIP = "api.ownership:Ownership"
MEMBERS = "hosting.members:Members"
CONSUMER = "api.consumer:Consumer"
CURSORS = "hosting.cursors:Cursors"
MISHAPS = "tests/unit/test_consumer_mishaps.py"
OWNED = "tests/unit/test_ownership.py"
JOINED = "tests/unit/test_consumer.py"
BATCHES = "tests/unit/test_batches.py"
BEHIND = "tests/unit/test_behind.py"

GROUPS = [
    Mutant(
        "owner-not-required",
        "a member owns a key when its epoch stands in the cursor",
        f"{OWNERSHIP}._begin",
        (("require_owner(owned.cursor, owned.epoch, key)", "pass"),),
        test=f"{OWNED}::test_who_was_overtaken_before_its_epoch_stood_in_the_cursor_owns_nothing",
    ),
    Mutant(
        "key-of-the-living",
        "a key is taken from its owner only when that one's beat has stood still",
        f"{MEMBERS}._alive",
        (("self._seen[n][1] + lease_s", "self._seen[n][1]"),),
        test=f"{OWNED}::test_members_that_join_after_a_death_take_the_keys_soon_after_a_lease",
    ),
    Mutant(
        "key-kept-by-who-left",
        "a member that leaves gives its keys back",
        f"{MEMBERS}._without_me",
        (("_replace(owner=None)", "_replace()"),),
        test=f"{JOINED}::test_a_record_under_way_of_a_member_that_leaves_has_not_failed",
    ),
    Mutant(
        "record-stays-in-flight",
        "a record that was not delivered comes with the next call",
        f"{CONSUMER}._deliver",
        (("if not delivered:\n                self", "if owned.leaving:\n                self"),),
        test=f"{MISHAPS}::test_a_record_that_a_cancellation_kept_back_comes_with_the_next_call",
    ),
    Mutant(
        "failure-counted-from-now",
        "a failure is counted from what was known at the delivery, so a repeat counts once",
        f"{CONSUMER}.fail",
        (("= owned.failures + 1", "= owned.cursor.failures + 1"),),
        test=f"{MISHAPS}::test_a_record_that_cannot_be_buried_keeps_no_other_key_back",
    ),
    Mutant(
        "change-without-a-name",
        "a change of a cursor is told from the same change of another process",
        f"{CURSORS}.change",
        (('by = f"{self._writer}/{next(self._changes)}"', 'by = ""'),),
        test=f"{MISHAPS}::test_the_same_acknowledgement_of_another_process_is_not_the_own_one",
    ),
    Mutant(
        "own-change-not-recognised",
        "a change whose answer was lost is recognised by its name",
        f"{CURSORS}.change",
        (("if unsure and old == tried:", "if unsure and old is tried:"),),
        test=f"{MISHAPS}::test_an_acknowledgement_by_hand_whose_answer_is_lost_was_the_one",
    ),
    Mutant(
        "known-cursor-believed",
        "what a process remembers of a cursor is only tried; an answer without a write is from a read",
        f"{CURSORS}.change",
        (("return None if known else old", "return old"),),
        test=f"{MISHAPS}::test_what_a_process_remembers_of_a_cursor_answers_nothing",
    ),
    Mutant(
        "buried-in-company",
        "a record that its next failure buries is delivered alone",
        f"{CONSUMER}._deliver",
        (("1 if is_last_try else limit", "limit"),),
        test=f"{BATCHES}::test_no_record_is_buried_for_a_failure_of_its_batch",
    ),
    Mutant(
        "passed-over-what-was-deleted",
        "a group that is behind what a retention left is told so",
        f"{CONSUMER}._look",
        (("looked.earliest.get(key, 0)", "0"),),
        test=f"{BEHIND}::test_a_group_that_is_behind_what_is_left_is_told_until_it_commits",
    ),
    Mutant(
        "keys-in-one-order",
        "a key that got records is asked for last in the next round",
        "api.tail:Tail.__anext__",
        (("del self._at[key]", "pass"),),
        test="tests/unit/test_log.py::test_a_new_record_of_any_key_comes_in_the_next_round",
    ),
    Mutant(
        "settled-in-any-epoch",
        "a batch of an older epoch is let go at once",
        "core.headlog.writer:Writer._is_over",
        ((" or not self._is_alive(job.batch)", ""),),
        test="tests/unit/test_writer.py::test_a_batch_of_an_older_epoch_is_let_go_at_once",
    ),
]
