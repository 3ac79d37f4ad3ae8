"""The kafka checker as a Spark job: one verdict for a run, whose history no machine holds.

It says what `workloads.kafka.checker` says, to the last witness, and takes each anomaly's definition from
there. Spark decides *where* to apply it: a pass in SQL tells for every key whether its share of the history
could hold an anomaly (`evidence`, `steps`), and only the shares of those keys meet the Python functions
(`shares`). Cycles are looked for among the transactions that can be on one (`cycles`).

    operations --by process--> processes --by key--> touches --> evidence --> steps --> one row a key

Many runs are judged by one job: `run`, a number, stands first in every key. See docs/spark-checker.md.
"""

from analysis.checker.sources import Source, from_histories, from_operations
from analysis.checker.verdicts import judge

__all__ = ["Source", "from_histories", "from_operations", "judge"]
