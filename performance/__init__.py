"""Programs that measure, and write what they found into the documents: `python -m performance.NAME`.

Each is one question; `harness` has what all of them share.

| program | what it measures |
|---|---|
| `ablation` | what each number of the policy buys: it gets another value, on the virtual clock |
| `arrival` | what arrival in turn costs, beside arrival when due |
| `calls` | Python calls that a message costs a node; what a lone `send` and a lone `append` enter |
| `campaign` | many simulated seeds of each strategy under each fault |
| `checker` | the kafka checker, in one process and as a Spark job; readers of histories |
| `exploration` | all schedules of small clusters, setting by setting |
| `ingest` | Spark's ingest of runs |
| `interface` | nothing: it writes the page of the library's interface, from its docstrings |
| `long_log` | the first polls of a node that starts on a long log, behind a store with a limited bandwidth |
| `node_throughput` | CPU of one node a message and a start, beside the limit of its interpreter |
| `opening` | a long log as JSON and as files: its size, what opens it, what merges its files |
| `price` | the curve of messages against latency |
| `recovery` | the time from the end of a fault until latency is as before |
| `s3_queue` | our log beside S3-Queue as published and repaired: rates, requests, dollars |
| `scaling`, `stores_under_faults`, `strategies` | pages of docs/performance, from the runs of a sweep |
| `simulation` | virtual seconds a second |
| `stores` | appends a second of the library on each store |
| `table_in_spark` | a log read and written by Spark, beside plain Parquet and DuckDB |
| `virtual` | what the protocol alone costs, beside `cas`, with aims |
"""
