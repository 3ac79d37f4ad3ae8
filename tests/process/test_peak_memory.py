"""How much memory a node's process takes at most: 40 MiB above what it may keep of the log."""

from math import inf

import pytest

from performance.long_log import INTEGERS, LongLog, Shape, fill, read_back

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMORY_MIB, BESIDE_MIB = 4.0, 40.0


@pytest.mark.parametrize(
    ("size_mb", "width", "shape"),
    [(2.4, 8, INTEGERS), (20.0, 1_000, Shape())],
    ids=["small integers", "texts"],
)
def test_a_log_that_is_read_back_takes_no_more_than_it_may(
    size_mb: float, width: int, shape: Shape
) -> None:
    """An integer of eight bytes in a line takes forty in memory, and so it is counted."""
    figures = read_back(LongLog(size_mb, width, shape), inf, MEMORY_MIB)
    assert figures.peak_mib <= MEMORY_MIB + BESIDE_MIB


def test_a_log_that_is_filled_takes_no_more_than_it_may() -> None:
    figures, _ = fill(20.0, 1_000, inf, MEMORY_MIB)
    assert figures.peak_mib <= MEMORY_MIB + BESIDE_MIB
