"""The figures of `performance.table_in_spark`: rates are compared by CPU seconds."""

from performance.table_in_spark import EVERY, PLAIN, READ_LOG, Cost, Row, cells, costed


def test_a_line_compares_rates_with_those_of_plain_parquet() -> None:
    ours = Row(EVERY, READ_LOG, Cost(1.0, 2.0), 1000)
    plain = Row(EVERY, PLAIN, Cost(1.0, 1.0), 900)
    assert cells(ours, [ours, plain]) == [EVERY, READ_LOG, "1.0", "2.0", "500", "0.56"]
    assert cells(ours, [])[-1] == ""


def test_work_costs_cpu_time_of_this_process() -> None:
    cost = costed(lambda: sum(range(3_000_000)))
    assert 0 < cost.cpu_s <= cost.seconds + 0.05
