"""Which phase of its run an operation belongs to, and which faults it met.

Columns that the other metrics group by.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from runs.facts import NEVER_OK

CALM, SEVERAL = "calm", "several"
MAIN, RECOVERY, FINAL = "main", "recovery", "final"


def judged(operations: DataFrame) -> DataFrame:
    """The operations that ought to succeed: all but those named in `NEVER_OK`."""
    return operations.filter(~F.col("f").isin(*NEVER_OK))


def with_phase(operations: DataFrame, runs: DataFrame) -> DataFrame:
    """Operations with `phase`, by the time of invocation.

    main: before the time limit of the run. recovery: in the wait after it, in which clients are silent
    and only what was invoked before may complete. final: after that wait. Null where the run does not
    tell its time limit, as the real tool's stores do not.

    Args:
        operations: the table.
        runs: the table, for time_limit_s and recovery_time_s (none counts as no wait).
    Returns:
        operations and phase.
    """
    limit_ns = F.col("time_limit_s") * 1e9
    final_ns = limit_ns + F.coalesce("recovery_time_s", F.lit(0.0)) * 1e9
    limits = runs.select("run_id", limit_ns.alias("_limit_ns"), final_ns.alias("_final_ns"))
    phase = (
        F.when(F.col("invoked_ns") < F.col("_limit_ns"), MAIN)
        .when(F.col("invoked_ns") < F.col("_final_ns"), RECOVERY)
        .when(F.col("_final_ns").isNotNull(), FINAL)
    )
    joined = operations.join(F.broadcast(limits), "run_id", "left")
    return joined.withColumn("phase", phase).drop("_limit_ns", "_final_ns")


def main_phase(operations: DataFrame, runs: DataFrame) -> DataFrame:
    """Operations of the main phase, with `phase`; of a run that does not tell its phases, all."""
    return with_phase(operations, runs).filter(F.coalesce("phase", F.lit(MAIN)) == MAIN)


def with_fault(operations: DataFrame, faults: DataFrame) -> DataFrame:
    """Operations with `fault`: a fault in force at some time between invocation and completion.

    calm: nothing; the kind of the fault: one kind; several: more than one kind. An operation without
    completion is under way to the end of the run, a fault without end is in force to it.

    Returns:
        operations and fault.
    """
    return with_fault_between(operations, faults, F.col("invoked_ns"), F.col("completed_ns"))


def with_fault_between(
    frame: DataFrame, faults: DataFrame, start_ns: Column, end_ns: Column
) -> DataFrame:
    """As `with_fault`, for rows of any table with `run_id` that last from `start_ns` to `end_ns`."""
    window = F.struct("kind", "started_ns", "ended_ns")
    of_run = faults.groupBy("run_id").agg(F.collect_list(window).alias("_faults"))
    joined = frame.join(F.broadcast(of_run), "run_id", "left")
    met = F.filter("_faults", lambda fault: _overlaps(fault, start_ns, end_ns))
    kinds = F.coalesce(F.array_distinct(met["kind"]), F.array().cast("array<string>"))
    label = F.when(F.size("_kinds") == 0, CALM).when(F.size("_kinds") == 1, F.col("_kinds")[0])
    labelled = joined.withColumn("_kinds", kinds).withColumn(
        "fault", F.coalesce(label, F.lit(SEVERAL))
    )
    return labelled.drop("_faults", "_kinds")


def _overlaps(fault: Column, start_ns: Column, end_ns: Column) -> Column:
    begins_before_end = end_ns.isNull() | (fault["started_ns"] <= end_ns)
    return begins_before_end & (fault["ended_ns"].isNull() | (fault["ended_ns"] >= start_ns))
