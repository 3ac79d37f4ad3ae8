"""A network journal's lines as messages: the sending of each joined with its receipt."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analysis.ingest.lines import parse
from analysis.schemas import BODY, JOURNAL_LINE, JOURNAL_REQUIRED
from runs.traffic import CLIENT, CLIENT_INITIAL, NODE, SERVICES, STORE


def parse_journal(lines: DataFrame) -> DataFrame:
    """Parsed lines; see `lines.parse`."""
    return parse(lines, JOURNAL_LINE, JOURNAL_REQUIRED, type="send recv")


def messages(journal: DataFrame) -> DataFrame:
    """Rows of the messages table from the good lines of a journal."""
    sent, received = F.col("type") == "send", F.col("type") == "recv"
    body = F.from_json("message.body", BODY)
    events = journal.withColumn("body", body).select(
        "run_id",
        F.col("message.id").alias("message_id"),
        F.col("message.src").alias("src"),
        F.col("message.dest").alias("dest"),
        F.col("body.type").alias("type"),
        F.col("body.msg_id").alias("rpc_id"),
        F.col("body.in_reply_to").alias("in_reply_to"),
        # The longest part by far: it goes through the shuffle once, not twice.
        F.when(sent, F.col("message.body")).alias("body_json"),
        F.when(sent, F.col("time")).alias("sent_ns"),
        F.when(received, F.col("time")).alias("received_ns"),
    )
    same = ["src", "dest", "type", "rpc_id", "in_reply_to", "body_json"]
    joined = events.groupBy("run_id", "message_id").agg(
        *(F.first(name, ignorenulls=True).alias(name) for name in same),
        F.min("sent_ns").alias("sent_ns"),
        F.min("received_ns").alias("received_ns"),
        F.count("sent_ns").alias("send_count"),
        F.count("received_ns").alias("recv_count"),
    )
    latency_ns = (F.col("received_ns") - F.col("sent_ns")).alias("latency_ns")
    return joined.select("*", latency_ns, link().alias("link"))


def link() -> Column:
    """The class of the link between `src` and `dest`: client, node-store or node-node."""
    ends = (F.col("src"), F.col("dest"))
    clients = [end.startswith(CLIENT_INITIAL) for end in ends]
    services = [end.isin(*SERVICES) for end in ends]
    return (
        F.when(clients[0] | clients[1], CLIENT)
        .when(services[0] | services[1], STORE)
        .otherwise(NODE)
    )
