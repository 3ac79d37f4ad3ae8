"""Java starts Spark in half the time with an archive of the classes that Spark loads.

`python -m analysis.classes` makes the archive in the Python environment: 190 MB, half a minute.
`analysis.spark` uses it where it is. `make setup` makes it where Java is.

This is Java's class data sharing (JEP 350). A process of Java writes the classes that it has loaded to a file
when it ends, and later ones map the file. Java ignores an archive that another Java made, or one of other jars.
"""

import os
import shlex
import sys
import tempfile
from pathlib import Path

import click
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from analysis import spark

ROWS = 1_000


def load_classes(session: SparkSession, folder: Path) -> None:
    """Do what our programs do: group, join, write files, run Python in executors, follow a stream."""
    plain = session.range(ROWS).select("id", (F.col("id") % 7).alias("key"))
    texts = plain.select("id", F.format_string("%d", "id").alias("text"))
    joined = plain.join(texts, "id").groupBy("key").agg(F.count("*"), F.max("text"), F.sum("id"))
    joined.orderBy("key").collect()
    file = str(folder / "plain")
    plain.write.partitionBy("key").parquet(file)
    read = session.read.parquet(file)
    read.mapInArrow(lambda batches: batches, read.schema).count()
    read.groupBy("key").applyInPandas(lambda frame: frame, read.schema).count()
    followed = session.readStream.schema(read.schema).parquet(file)
    sink = followed.writeStream.trigger(availableNow=True).format("parquet")
    sink.option("checkpointLocation", str(folder / "checkpoint")).start(
        str(folder / "copy")
    ).awaitTermination()


@click.command()
def main() -> None:
    """Make the archive of Spark's classes; Spark then starts in half the time."""
    spark.CLASSES.unlink(missing_ok=True)
    archive = shlex.quote(f"-XX:ArchiveClassesAtExit={spark.CLASSES}")
    options = f"{spark.BRIEF['spark.driver.extraJavaOptions']} {spark.QUIET_JAVA} {archive}"
    words = ["--conf", f"spark.driver.extraJavaOptions={options}", "pyspark-shell"]
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(words)
    session = spark.start("local[2]", brief=True)
    gateway = session.sparkContext._gateway
    assert gateway
    with tempfile.TemporaryDirectory() as folder:
        load_classes(session, Path(folder))
    session.stop()
    gateway.proc.stdin.close()  # then Java ends, and writes the archive
    gateway.proc.wait()
    if not spark.CLASSES.exists():
        sys.exit(f"Java wrote no archive: {spark.CLASSES}")
    click.echo(f"{spark.CLASSES}: {spark.CLASSES.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
