"""Rules of groups of consumers, and one of the committer. Each is found by a test."""

from tests.mutants.mutant import Mutant

OWNERSHIP = "library.ownership:Ownership"
CONSUMER = "library.consumer:Consumer"
CURSORS = "library.cursors:Cursors"
MISHAPS = "tests/unit/test_consumer_mishaps.py"
OWNED = "tests/unit/test_ownership.py"

GROUPS = [
    Mutant(
        "owner-not-required",
        "a member owns a key when its epoch stands in the cursor",
        f"{OWNERSHIP}._keep",
        (("require_owner(owned.cursor, owned.epoch, key)", "pass"),),
        test=f"{OWNED}::test_who_was_overtaken_before_its_epoch_stood_in_the_cursor_owns_nothing",
    ),
    Mutant(
        "key-of-the-living",
        "a key is taken from its owner only when its claim has stood still",
        f"{OWNERSHIP}._hold",
        (("asked - since >= self._lease_s", "asked - since >= 0"),),
        test=f"{OWNED}::test_members_that_join_after_a_death_take_the_keys_soon_after_a_lease",
    ),
    Mutant(
        "claim-kept-without-a-key",
        "what ends the task of a key gives its claim back",
        f"{OWNERSHIP}._keep",
        (("await self._host.call(lease.release())\n            raise", "raise"),),
        test=f"{MISHAPS}::test_a_claim_whose_cursor_cannot_be_written_is_given_back",
    ),
    Mutant(
        "record-stays-in-flight",
        "a record that was not delivered comes with the next call",
        f"{CONSUMER}._deliver",
        (("if not delivered:", "if owned.leaving:"),),
        test=f"{MISHAPS}::test_a_record_that_a_cancellation_kept_back_comes_with_the_next_call",
    ),
    Mutant(
        "failure-counted-from-now",
        "a failure is counted from what was known at the delivery, so a repeat counts once",
        f"{CONSUMER}.fail",
        (("owned.failures + 1", "owned.cursor.failures + 1"),),
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
        "keys-in-one-order",
        "a key that got records is asked for last in the next round",
        "library.tail:Tail.__anext__",
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
