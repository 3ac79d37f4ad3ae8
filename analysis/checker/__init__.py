"""The kafka checker as a Spark job: one verdict for a run, whose history no machine holds.

Verdict, types and counts are those of `workloads.kafka.checker`, which also defines each anomaly. Spark
decides *where* to apply a definition: a pass in SQL finds the keys whose share of the history could hold an
anomaly (`evidence`, `steps`), and the Python functions judge only the shares of those keys (`shares`). The
graph functions get only the transactions that can be on a cycle (`cycles`).

    operations --by process--> placed --by key--> accesses --> evidence --> steps --> one row a key

Many runs are judged by one job: `run`, a number, stands first in every key. See docs/analysis/scale.md.
"""

from analysis.checker.sources import Source, from_histories, from_operations
from analysis.checker.verdicts import judge

__all__ = ["Source", "from_histories", "from_operations", "judge"]
