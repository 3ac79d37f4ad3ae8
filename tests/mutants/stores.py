"""Rules about the answers of real stores: what makes no sense is no answer."""

from tests.mutants.mutant import Mutant

ANSWERS = "tests/unit/test_answers_of_stores.py"
PROBE = "tests/unit/test_probe.py::test_each_law_that_a_store_breaks_is_named"
REGISTERS = "tests/unit/test_registers.py"
TRIED = "store.probe:_Tried"

STORES = [
    Mutant(
        "damaged-is-refused",
        "what an object holds and cannot be parsed is no answer",
        "store.calls:parsed",
        (("raise Damaged(text)", "raise Refused(text)"),),
        test=f"{REGISTERS}::test_what_does_not_parse_is_no_answer",
    ),
    Mutant(
        "version-of-damage-kept",
        "a version is remembered only with the value that came with it",
        "store.registers:Registers._parsed",
        (
            (
                "value = known if is_known else parsed(",
                "self._remembered(key).version = found.version\n        value = known if is_known else parsed(",
            ),
        ),
        test=f"{REGISTERS}::test_a_version_that_came_with_a_damaged_value_is_not_remembered",
    ),
    Mutant(
        "never-taken-never-named",
        "a version that the store shows and never takes ends as an error that says so",
        "store.registers:Registers._refused",
        ((">= ROUNDS and self._distinct", ">= ROUNDS and False"),),
        test=f"{REGISTERS}::test_a_version_that_is_shown_and_never_taken_is_named",
    ),
    Mutant(
        "parse-error-is-refused",
        "an answer of a bucket that cannot be parsed leaves open what happened",
        "store.bucket:classified",
        (("isinstance(error, UnicodeEncodeError)", "isinstance(error, ValueError)"),),
        test=f"{ANSWERS}::test_what_errors_of_obstore_mean",
    ),
    Mutant(
        "no-etag-is-refused",
        "an answer without an ETag leaves open what happened",
        "store.etags:version_of",
        (("raise OutcomeUnknown(", "raise Refused("),),
        test=f"{ANSWERS}::test_an_answer_without_an_etag_is_no_refusal",
    ),
    Mutant(
        "no-etag-is-a-conflict",
        "an answer without an ETag is no conflict: the write took effect",
        "store.etags:version_of",
        (("raise OutcomeUnknown(", "raise Conflict("),),
        test=f"{ANSWERS}::test_an_answer_without_an_etag_is_no_refusal",
    ),
    Mutant(
        "etcd-unchecked",
        "an answer of etcd is one only with its header",
        "store.etcd:EtcdStore._post",
        (
            (
                'self._decoded(answer, lambda: _require(bool(answer["header"]["cluster_id"]), "whose?"))',
                "pass",
            ),
        ),
        test=f"{ANSWERS}::test_an_answer_of_etcd_to_a_listing_makes_sense_or_is_none",
    ),
    Mutant(
        "short-range-taken",
        "a range of a file has as many bytes as were asked for",
        "store.files:require_length",
        (("if len(content) != length:", "if False:"),),
        test=f"{ANSWERS}::test_a_range_of_another_length_is_no_answer",
    ),
    Mutant(
        "any-listing-taken",
        "a listing has keys of the folder that was asked for, in order",
        "store.port:require_page",
        (("if not (", "if False and not ("),),
        test="tests/unit/test_damaged_answers.py::test_a_listing_of_something_else_is_no_answer",
    ),
    Mutant(
        "any-claim-taken",
        "what a register of a claim holds is decoded before it is believed",
        "core.claims:Holder.seek",
        (("self._decode)", "lambda value: value)"),),
        test="tests/unit/test_claims.py::test_a_damaged_claim_is_read_again_and_a_broken_one_is_named",
    ),
    Mutant(
        "shown-version-not-tried",
        "`init` tries to update the version that a read shows",
        f"{TRIED}.updates",
        (("shown = await self._read()", "shown = self._version"),),
        test=PROBE,
    ),
    Mutant(
        "given-version-not-tried",
        "`init` tries to update the version that a write gave",
        f"{TRIED}.updates",
        (("given = self._version", "given = await self._read()"),),
        test=PROBE,
    ),
    Mutant(
        "conflicts-believed",
        "`init` looks whether a write took effect that met a conflict",
        f"{TRIED}._outcome",
        (("if found and found.value == value:", "if False:"),),
        test=PROBE,
    ),
]
