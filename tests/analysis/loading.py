"""A load that tests kill: `python -m tests.analysis.loading URL FORM` writes `ROWS` rows under one name.

`FORM`: "rows"; "empty", when a filter has left none; or "others", the same rows in another order and other
tasks.
"""

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analysis.spark import start
from leaderless.spark import LeaderlessDataSource

ROWS = 6_000
FORMS = {
    "rows": lambda frame: frame,
    "empty": lambda frame: frame.where("id < 0"),
    "others": lambda frame: frame.orderBy(F.desc("id")).repartition(3),
}


def main(url: str, form: str) -> None:
    """Write the frame."""
    spark = start("local[2]", brief=True)
    spark.dataSource.register(LeaderlessDataSource)
    frame: DataFrame = FORMS[form](spark.range(ROWS))
    value = F.struct("id", F.repeat(F.lit("x"), F.lit(4_000)).alias("text"))
    rows = frame.select(F.format_string("k%d", F.col("id") % 7).alias("key"), value.alias("value"))
    rows.write.format("leaderless").mode("append").option("name", "load").save(url)


if __name__ == "__main__":
    main(*sys.argv[1:])
