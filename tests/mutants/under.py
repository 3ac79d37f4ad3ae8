"""Run a test with a mutant alive: `python -m tests.mutants.under NAME TEST`; exits as pytest does.

When the test cannot be run at all, the status is that of a wrong usage: else it would look like a test that
fails, and the mutant like one that was found.
"""

import sys
import traceback

import pytest

from tests.mutants.cases import CASES

# The package is imported before pytest: a mutant of a function changes it in every module that has it.
ALREADY_IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"


def main() -> None:
    name, test = sys.argv[1:]
    mutant = CASES[name].mutant
    assert mutant, f"{name} is no mutant"
    try:
        with mutant.alive():
            status = pytest.main(
                [test, "-q", "-x", "-p", "no:cacheprovider", "-W", ALREADY_IMPORTED]
            )
    except BaseException:
        traceback.print_exc()
        status = pytest.ExitCode.USAGE_ERROR
    raise SystemExit(status)


if __name__ == "__main__":
    main()
