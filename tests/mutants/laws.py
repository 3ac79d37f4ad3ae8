"""Laws that the core checks before a call of the store, or after it: each check is left out once."""

from tests.mutants.mutant import Mutant

TESTS = "tests/unit/test_core_laws.py"
COMPACTOR = "core.headlog.compaction:Compactor"
CONSUMER = "core.headlog.consumer:ConsumerService"
HOLDER = "core.claims:Holder"
ARCHIVE = "core.headlog.archive:Archive"
MEMORY = "core.headlog.memory:Memory"
ANSWER = f"{TESTS}::test_an_answer_with_a_gap_is_never_given"


def _without(name: str, rule: str, place: str, check: str, test: str) -> Mutant:
    return Mutant(name, rule, place, ((check, "pass"),), test=test)


LAWS = [
    _without(
        "lease-written-unlooked",
        "a lease is written only if it may follow the one before",
        f"{HOLDER}._replace",
        "new.require_after(old)",
        f"{TESTS}::test_a_lease_is_never_given_back_in_an_older_epoch",
    ),
    _without(
        "lease-read-unlooked",
        "a lease that is read follows the one that was seen before",
        f"{HOLDER}.seek",
        "self._known.require_after(known)",
        f"{TESTS}::test_a_lease_that_came_back_is_found_out",
    ),
    _without(
        "index-written-unlooked",
        "an index is written only if it may follow the one before",
        f"{COMPACTOR}._update",
        "new.require_after(old)",
        f"{TESTS}::test_a_run_that_does_not_follow_the_others_is_never_named",
    ),
    _without(
        "index-read-unlooked",
        "an index that a worker reads follows the one that was seen before",
        "core.headlog.replica:Replica.read_index",
        "index.require_after(known)",
        f"{TESTS}::test_an_index_that_came_back_is_found_out",
    ),
    _without(
        "any-index-learnt",
        "of two indices of a log one became the other",
        f"{ARCHIVE}.learn",
        "newer.require_after(older)",
        f"{TESTS}::test_of_two_indices_one_became_the_other",
    ),
    Mutant(
        "slots-of-another-run",
        "a run or page has the slots that are listed",
        f"{ARCHIVE}._part_of",
        (("if (part.base, part.end) != (listed.base, listed.end):", "if False:"),),
        test=f"{TESTS}::test_a_run_has_the_slots_that_are_listed",
    ),
    Mutant(
        "page-with-a-gap",
        "in a page a key begins where it ended in the children before",
        "core.headlog.index:distribute",
        (("if record[-1] != first:", "if False:"),),
        test=f"{TESTS}::test_a_key_of_a_page_has_no_gap",
    ),
    Mutant(
        "run-without-the-offset",
        "a run that is read back has the offset that was asked for",
        f"{MEMORY}.read",
        (("if not first <= start < first + len(msgs):", "if False:"),),
        test=f"{TESTS}::test_a_run_that_lacks_what_its_page_says_is_no_answer",
    ),
    _without(
        "gap-from-memory",
        "a poll answers no gap from memory",
        f"{CONSUMER}._in_memory",
        "require_contiguous(key, max(0, offset), run)",
        f"{ANSWER}[from memory]",
    ),
    _without(
        "gap-from-runs",
        "a poll answers no gap from runs",
        f"{CONSUMER}._read_back",
        "require_contiguous(key, max(0, offset, run[0][0]), run)",
        f"{ANSWER}[from runs]",
    ),
    _without(
        "growth-while-fenced",
        "a log that is fenced has nothing new in its epoch, whenever it is read",
        "core.headlog.attempt:raise_epoch",
        "require_after(first, head)",
        f"{TESTS}::test_a_fenced_log_does_not_grow_in_its_epoch",
    ),
]
