"""What the job knows in the end: one row a key, from which all verdicts follow."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from workloads.kafka.checker.unseen import SHOWN_OF_A_KEY


def key_facts(stepped: DataFrame) -> DataFrame:
    """One row for each run and key.

    suspicious       its share must be looked at by the Python functions
    unseen           the acknowledged messages that nobody polled; is_sent: any was acknowledged
    is_known         the offset of some message is known
    first_polled_at  place of the first successful poll of the key, null if there is none
    worst            the worst lag: lag (ns), minus_at, process, now; null if nobody polled
    has_edge         some transaction polled what another sent
    backward         edges that lead back in phi, as (low, high): phi of the reader, of the writer
    resent           messages sent more than once, with the place of their last writer
    """
    in_log = (F.col("kind") == "poll") | (F.col("type") == "ok") | F.col("seen")
    known = F.col("offset").isNotNull() & in_log & (F.col("type") != "open")
    backward = F.struct(F.col("phi").alias("low"), F.col("edge.phi").alias("high"))
    resent = F.struct("message", F.col("resent").alias("writer"))
    return stepped.groupBy("run", "key").agg(
        F.max(_true("suspect") | _true("skips")).alias("suspicious"),
        F.collect_set(F.when(F.col("unseen"), F.col("message"))).alias("unseen"),
        F.max(_is_ok("send")).alias("is_sent"),
        F.max(known).alias("is_known"),
        F.min(F.when(_is_ok("poll"), F.col("at"))).alias("first_polled_at"),
        F.max("worst").alias("worst"),
        F.max(F.col("edge").isNotNull()).alias("has_edge"),
        F.collect_set(F.when(_true("backward"), backward)).alias("backward"),
        F.collect_set(F.when(F.col("resent").isNotNull(), resent)).alias("resent"),
    )


def unseen_shown(keys: DataFrame) -> DataFrame:
    """The number of unseen messages of each key that has any, and the first ones, as the bench orders them."""
    kind = {"#": 0, '"': 2}  # any other is a number
    sortable = F.transform("unseen", lambda text: _natural(text, kind))
    shown = F.transform(
        F.slice(F.sort_array(sortable), 1, SHOWN_OF_A_KEY), lambda each: each["text"]
    )
    missing = keys.filter(F.size("unseen") > 0)
    return missing.select("run", "key", F.size("unseen").alias("count"), shown.alias("messages"))


def _natural(text: Column, kind: dict[str, int]) -> Column:
    first = text.substr(1, 1)
    rank = F.when(first == "#", kind["#"]).when(first == '"', kind['"']).otherwise(1)
    number = F.when(rank == 1, text.try_cast("decimal(38,0)"))
    return F.struct(rank.alias("rank"), number.alias("number"), text.alias("text"))


def _true(column: str) -> Column:
    return F.coalesce(F.col(column), F.lit(False))


def _is_ok(kind: str) -> Column:
    return (F.col("kind") == kind) & (F.col("type") == "ok")
