"""What the register of the list of files holds (`leaderless.table.manifest`)."""

from typing import Any

import pytest

from leaderless.core.coordination import Misfit
from leaderless.errors import OtherFormat
from leaderless.table.manifest import Manifest, Merged, Replaced, Start, manifest_of

FILE = Merged("merged/a", 1, 0, 3, 0, 40, 80, 9_000, ("a", "b"))
MANIFEST = Manifest(
    2, 7, (FILE, FILE._replace(keys=None)), (Replaced("x", 1.5),), Start(0, 0, "start/1")
)
VALUE: dict[str, Any] = MANIFEST.value
[LISTED, _] = VALUE["files"]


def test_it_comes_back_as_it_was() -> None:
    assert manifest_of(VALUE) == MANIFEST
    assert manifest_of(Manifest().value) == Manifest()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epoch": "2"}, {"epoch": -1}, {"version": 1.0}, {"version": True}, {"start": [0, 0]},
        {"start": [0, "0", None]}, {"replaced": [["x"]]}, {"replaced": [["x", "1.5"]]}, {"files": {}},
        {"files": [LISTED[:-1]]}, {"files": [[7, *LISTED[1:]]]}, {"files": [["a", "1", *LISTED[2:]]]},
        {"files": [[*LISTED[:-1], ["a"]]]}, {"format": "1"}, {"format": None},
    ],
    ids=str,
)  # fmt: skip
def test_what_no_program_writes_is_a_misfit(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        manifest_of(VALUE | wrong)


def test_one_of_a_later_release_is_named() -> None:
    with pytest.raises(OtherFormat, match="format 2"):
        manifest_of(VALUE | {"format": 2})
