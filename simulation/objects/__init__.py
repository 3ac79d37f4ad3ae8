"""Logs on a virtual object store, on a virtual clock, from a seed.

The code under test is asynchronous and runs as it is: our library (`leaderless.api`), and S3-Queue as
published and repaired (`s3_queue`). Only the event loop and the bucket are simulated.

| module | what is in it |
|---|---|
| `loop` | an event loop of asyncio whose clock jumps; processes that can be stopped |
| `bucket` | objects, ETags, listings; every request with its time, cost and fate |
| `client` | the store port of one process on the bucket: latency, bandwidth, lost answers |
| `scenario` | the options and acts of a run, drawn from its seed |
| `lives` | in a mixed run: what each life of a process is |
| `logs` | the three logs, with the same few operations |
| `nodes` | nodes of our log, and what they say to each other |
| `run` | processes, workers, the history of a run, and what is wrong with it |
| `story` | a run's requests as numbered events |
"""
