"""Why the server messages were sent."""

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from analysis.metrics.network import per_operation
from runs.traffic import STORE

COMMIT, CONFLICT, REFRESH = "commit", "conflict", "refresh"
HAND_OVER, RETRY, OTHER = "hand-over", "retry", "other"
CAUSES = (COMMIT, CONFLICT, REFRESH, HAND_OVER, RETRY, OTHER)
PRECONDITION_FAILED = 22  # [maelstrom errors.edn]
WRITES, HAND_OVERS = ("cas", "write"), ("hand_over", "send")
_CALL = ["run_id", "asker", "asked", "call"]


def message_causes(messages: DataFrame, operations: DataFrame) -> DataFrame:
    """Server messages by what made them necessary. Each counts once; an answer counts with its request.

    - commit: a store write (`cas`, `write`) that succeeded: it moves the log on;
    - conflict: a request to the store that was answered with error 22: another node was first;
    - refresh: a store `read`: a view was too old, or a conflict made a node look again;
    - hand-over: a batch or message given to another node to be appended (`hand_over`, and the `send`
      that follower nodes pass on to a leader);
    - retry: a request whose answer did not arrive within the run: a message was lost, or the node gave up
      on the request and had to ask again;
    - other: the rest (pushes to other nodes, answers to requests that were not recorded).

    Args:
        messages, operations: the tables.
    Returns:
        run_id, cause, message_count, messages_per_operation (null without operations), ordered by run_id,
        cause; a cause without messages has no row.
    """
    servers = messages.filter("link <> 'client'")
    requests = servers.filter("in_reply_to is null")
    # A duplicated request has two answers: the call is one, and its messages are counted one by one.
    calls = _calls(requests, asker="src", asked="dest", call="rpc_id").agg(
        F.first("type").alias("request"),
        F.first("link").alias("request_link"),
        F.count("*").alias("requests"),
    )
    answered = _calls(servers, asker="dest", asked="src", call="in_reply_to").agg(
        F.count("*").alias("answers"),
        F.min(F.get_json_object("body_json", "$.code").cast("int")).alias("code"),
        F.max(F.when(F.col("recv_count") > 0, True)).alias("arrived"),
    )
    joined = calls.join(answered, _CALL, "full").select("*", _cause().alias("cause"))
    count = F.coalesce("requests", F.lit(0)) + F.coalesce("answers", F.lit(0))
    counted = joined.groupBy("run_id", "cause").agg(F.sum(count).alias("message_count"))
    unasked = requests.filter("rpc_id is null").select(
        "run_id", F.lit(OTHER).alias("cause"), F.lit(1).alias("message_count")
    )
    both = counted.unionByName(unasked).groupBy("run_id", "cause")
    summed = both.agg(F.sum("message_count").alias("message_count"))
    return per_operation(summed, operations).orderBy("run_id", "cause")


def _calls(servers: DataFrame, **ends: str) -> GroupedData:
    """The messages by call: `ends` names the columns that identify it, for requests or for answers."""
    named = [F.col(column).alias(name) for name, column in ends.items()]
    return servers.filter(F.col(ends["call"]).isNotNull()).groupBy("run_id", *named)


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
