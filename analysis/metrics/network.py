"""How many messages a run took, in all and for each operation: what `runs.traffic` defines, for Spark."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

PER_OPERATION = "messages_per_operation"


def network_statistics(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """The real tool's `:net` map as a table.

    Returns:
        run_id, scope (all | clients | servers), send_count and recv_count (events in the journal),
        message_count (distinct messages), messages_per_operation (null without operations); always
        three rows for a run that has messages.
    """
    is_client = F.col("link") == "client"
    scopes = F.array(F.lit("all"), F.when(is_client, "clients").otherwise("servers"))
    scoped = messages.select("*", F.explode(scopes).alias("scope"))
    counted = scoped.groupBy("run_id", "scope").agg(
        F.sum("send_count").alias("send_count"),
        F.sum("recv_count").alias("recv_count"),
        F.count("*").alias("message_count"),
    )
    every = F.explode(F.array(*map(F.lit, ("all", "clients", "servers")))).alias("scope")
    rows = messages.select("run_id").distinct().select("run_id", every)
    complete = rows.join(counted, ["run_id", "scope"], "left").fillna(0)
    return per_operation(complete, operations).orderBy("run_id", "scope")


def messages_by_type(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """Messages of each type on each class of link; `link <> 'client'` are the server messages.

    Returns:
        run_id, link (client | node-store | node-node), type, message_count, lost_count (sent, but
        never received), messages_per_operation.
    """
    lost = F.count_if((F.col("send_count") > 0) & (F.col("recv_count") == 0))
    counted = messages.groupBy("run_id", "link", "type").agg(
        F.count("*").alias("message_count"), lost.alias("lost_count")
    )
    return per_operation(counted, operations).orderBy(
        "run_id", "link", F.desc("message_count"), "type"
    )


def per_operation(counted: DataFrame, operations: DataFrame) -> DataFrame:
    """With `messages_per_operation`: `message_count` by the invocations of its run."""
    invoked = operations.groupBy("run_id").agg(F.count("*").alias("operations"))
    share = F.col("message_count") / F.col("operations")
    joined = counted.join(F.broadcast(invoked), "run_id", "left")
    return joined.withColumn(PER_OPERATION, share).drop("operations")
