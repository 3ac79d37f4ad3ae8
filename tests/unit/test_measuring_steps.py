"""The steps of `performance.table_in_spark`: one that fails is named, and the others go on."""

from analysis.failures import SLOW_START
from performance.table_costs import Cost
from performance.table_in_spark import TRIES, Steps
from performance.table_logs import Sizes
from performance.table_page import Growth, Row, page
from performance.table_readers import EVERY, PLAIN, READ_LOG


def test_a_step_that_fails_leaves_the_others() -> None:
    steps = Steps()

    def fail() -> int:
        raise OSError("no space left\nand more")

    assert steps.run("one", fail) is None
    assert steps.run("two", lambda: 2) == 2
    assert steps.failed == ["one: OSError: no space left"]


def test_a_step_for_which_spark_was_slow_to_start_is_tried_again() -> None:
    steps, tries = Steps(), iter(range(1, TRIES + 1))

    def fail() -> int:
        if (number := next(tries)) < TRIES:
            raise OSError(SLOW_START)
        return number

    assert steps.run("once more", fail) == TRIES
    assert steps.failed == []


def test_the_page_compares_rates_and_leaves_out_what_was_not_measured() -> None:
    rows = [
        Row(EVERY, READ_LOG, Cost(1.0, 2.0), 1000),
        Row(EVERY, PLAIN, Cost(1.0, 1.0), 900, 1.25),
    ]
    sizes = Sizes(files=2, files_mb=25.0, json_mb=101.0, pages_mb=1.0, written=2.5)
    steps = {"merge": {"memory": 300.0, "files": 16.0, "read_mb": 13.0, "cpu_s": 2.0}}
    some = Growth(1000, sizes, rows, Cost(1.0, 1.0), steps)
    text = page(
        "python -m it", [some, Growth(5000, sizes, [], Cost(0, 0))], [], ["sink: it said no"]
    )
    assert "| all columns | read_log | 1.0 | 2.0 | 1,000 | 1,000 | 500 | 0.56 |  |" in text
    assert "| its highest memory, MB | 300 |  |" in text
    assert "Spark starts" not in text
    assert "- sink: it said no" in text
