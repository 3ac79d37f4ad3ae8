"""How much memory a node's process takes at most: 40 MiB above what it may keep of the log."""

from math import inf

import pytest

from performance.long_log import LongLog, read_back, take

pytestmark = [pytest.mark.process, pytest.mark.slow]

MEMORY_MIB, BESIDE_MIB = 4.0, 40.0


@pytest.mark.parametrize(
    ("size_mb", "width", "integers"),
    [(2.4, 8, True), (20.0, 1_000, False)],
    ids=["small integers", "texts"],
)
def test_a_node_takes_no_more_than_it_may(size_mb: float, width: int, integers: bool) -> None:
    """Neither while a log is filled, nor while it is read back.

    An integer of eight bytes in a line takes forty in memory, and so it is counted.
    """
    log = LongLog(size_mb, width, integers=integers)
    assert take(log, MEMORY_MIB).peak_mib <= MEMORY_MIB + BESIDE_MIB
    assert read_back(log, inf, MEMORY_MIB).peak_mib <= MEMORY_MIB + BESIDE_MIB
