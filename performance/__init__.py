"""Programs that measure, and write what they found into the documents: `python -m performance.NAME`.

Each is one question; `harness` has what all of them share.

| program | what it measures |
|---|---|
| `ablation` | what each number of the policy buys: it gets another value, on the virtual clock |
| `calls` | Python calls that a message costs a node; what a lone `send` and a lone `append` enter |
| `campaign` | many simulated seeds of each strategy under each fault |
| `exploration` | all schedules of small clusters, setting by setting |
| `ingest` | Spark's ingest of runs |
| `node_throughput` | CPU of one node a message and a start, beside the limit of its interpreter |
| `pages` | nothing: it makes pages of docs/performance from the runs of a sweep |
| `price` | the curve of messages against latency |
| `recovery` | the time from the end of a fault until latency is as before |
| `remote_log` | a load on a store that is far away, and what it leaves to who comes next |
| `s3_queue` | our log beside S3-Queue as published and repaired: rates, requests, dollars |
| `simulation` | virtual seconds a second |
| `stores` | appends a second of the library on each store |
| `virtual` | what the protocol alone costs, beside `cas`, with aims |
"""
