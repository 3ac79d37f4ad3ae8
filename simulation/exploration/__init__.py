"""Every schedule of a few nodes or programs, or of both on one bucket: `search` chooses.

| module | knowledge of this module alone |
|---|---|
| `search` | depth-first search with merged states; knows nothing of processes |
| `instants` | time that stands still between two timers, and yet tells before from after |
| `setting` | what may happen: nodes or programs, requests, budgets of faults |
| `clients` | the requests, their order, and the history that the checker reads |
| `processes` | what nodes and programs do, each thing found out once |
| `stage` | messages on their way, the time, and who reads what when |
| `explored` | the events that nodes and programs have in common, and the digest of a state |
| `cluster` | nodes beside `lin-kv`: the fates of messages, and the judgement of an end |
| `bucket` | programs and nodes beside a bucket: the fates of requests, and the judgement of an end |
| `campaign` | which systems a setting means; a search in slices |
| `telling` | the first failure: made small, told, kept as a schedule |
| `graph` | all states of a small system, with every event that may happen in each |
| `shown` | what a reader sees of a state: cards, sentences, messages, what the laws say |
| `book` | a search or a schedule as a book of the explorer's page |
"""
