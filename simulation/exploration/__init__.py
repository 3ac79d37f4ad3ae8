"""Every schedule of a small cluster of the real core, or of processes on a bucket: `search` chooses.

| module | knowledge of this module alone |
|---|---|
| `events` | what an event touches, and so which events commute |
| `search` | depth-first search with sleep sets and merged states; knows nothing of clusters |
| `instants` | time that stands still between two timers, and yet tells before from after |
| `settings` | what settings of both kinds do with their options |
| `setting` | what may happen: nodes, requests, budgets of faults |
| `clients` | the requests, their order, and the history that the checker reads |
| `cluster` | the events of a cluster of the real core, and the judgement of an end |
| `bucket_setting` | what may happen in a bucket: the log, its clients, budgets of faults |
| `chosen_loop` | an event loop whose clock moves when it is told to |
| `held` | requests to a bucket that wait for their fate |
| `bucket` | the events of processes with the real code of a log on one bucket |
| `systems` | which of the two a setting means |
| `campaign` | a search in parts, over the cores, kept in a file |
| `telling` | the first failure: made small, told, kept as a schedule |
"""
