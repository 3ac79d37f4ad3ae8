"""Programs that measure, and write what they found into the documents: `python -m performance.NAME`.

Each is one question; `harness` has what all of them share, and `age` says of a page whether the code
is newer. A page names the commit of a program that is gone. `pages` is made of
`strategies` and `scaling`, which read what a sweep `measured`.

| program | what it measures |
|---|---|
| `ablation` | what each number of the policy buys: it gets another value, on the virtual clock |
| `calls` | Python calls that a message costs a node; what a lone `send` and a lone `append` enter |
| `exploration` | all schedules of small clusters, setting by setting |
| `node_throughput` | CPU of one node a message and a start, beside the limit of its interpreter |
| `pages` | nothing: it makes pages of docs/performance from the runs of a sweep |
| `price` | the curve of messages against latency |
| `s3_queue` | S3-Queue and our log, as far away as the clouds are |
| `virtual` | what the protocol alone costs, beside `cas`, with aims |
"""
