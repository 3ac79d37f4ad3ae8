"""Run a test with a mutant alive: `python -m tests.mutants.under NAME TEST`; exits as pytest does."""

import sys

import pytest

from tests.mutants.cases import CASES


def main() -> None:
    name, test = sys.argv[1:]
    mutant = CASES[name].mutant
    assert mutant, f"{name} is no mutant"
    with mutant.alive():
        status = pytest.main([test, "-q", "-x", "-p", "no:cacheprovider"])
    raise SystemExit(status)


if __name__ == "__main__":
    main()
