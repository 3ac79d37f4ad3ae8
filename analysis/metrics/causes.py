"""Why the server messages were sent: what `runs.messages.message_causes` defines, for Spark."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analysis.metrics.network import per_operation
from runs.messages import (
    COMMIT,
    CONFLICT,
    HAND_OVER,
    HAND_OVERS,
    OTHER,
    PRECONDITION_FAILED,
    REFRESH,
    RETRY,
    STORE,
    WRITES,
)


def message_causes(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """Server messages by what made them necessary.

    Args:
        messages, operations: the tables.
    Returns:
        run_id, cause, message_count, messages_per_operation (null without operations), ordered by run_id,
        cause; a cause without messages has no row.
    """
    servers = messages.filter("link <> 'client'")
    requests = servers.filter("rpc_id is not null and in_reply_to is null").select(
        "run_id",
        F.col("src").alias("asker"),
        F.col("dest").alias("asked"),
        F.col("rpc_id").alias("call"),
        F.col("type").alias("request"),
        F.col("link").alias("request_link"),
    )
    answers = servers.filter("in_reply_to is not null").select(
        "run_id",
        F.col("dest").alias("asker"),
        F.col("src").alias("asked"),
        F.col("in_reply_to").alias("call"),
        F.col("type").alias("answer"),
        F.get_json_object("body_json", "$.code").cast("int").alias("code"),
        F.when(F.col("recv_count") > 0, True).alias("arrived"),
    )
    same = ["run_id", "asker", "asked", "call"]
    # A duplicated request has two answers: the call is one, and its messages are counted one by one.
    calls = requests.groupBy(same).agg(
        F.first("request").alias("request"),
        F.first("request_link").alias("request_link"),
        F.count("*").alias("requests"),
    )
    answered = answers.groupBy(same).agg(
        F.count("*").alias("answers"),
        F.min("code").alias("code"),
        F.max("arrived").alias("arrived"),
    )
    joined = calls.join(answered, same, "full").select("*", _cause().alias("cause"))
    count = F.coalesce("requests", F.lit(0)) + F.coalesce("answers", F.lit(0))
    counted = joined.groupBy("run_id", "cause").agg(F.sum(count).alias("message_count"))
    unasked = servers.filter("rpc_id is null and in_reply_to is null").select(
        "run_id", F.lit(OTHER).alias("cause"), F.lit(1).alias("message_count")
    )
    both = counted.unionByName(unasked).groupBy("run_id", "cause")
    summed = both.agg(F.sum("message_count").alias("message_count"))
    return per_operation(summed, operations).orderBy("run_id", "cause")


def _cause() -> Column:
    at_store = F.col("request_link") == STORE
    return (
        F.when(F.col("request").isNull(), OTHER)
        .when(F.col("arrived").isNull(), RETRY)
        .when(at_store & (F.col("code") == PRECONDITION_FAILED), CONFLICT)
        .when(at_store & (F.col("request") == "read"), REFRESH)
        .when(at_store & F.col("request").isin(*WRITES) & F.col("code").isNull(), COMMIT)
        .when(~at_store & F.col("request").isin(*HAND_OVERS), HAND_OVER)
        .otherwise(OTHER)
    )
