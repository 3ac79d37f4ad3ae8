"""Every schedule of a small cluster of the real core, or of processes on a bucket: `search` chooses.

| module | knowledge of this module alone |
|---|---|
| `events` | what an event touches, and so which events commute |
| `search` | depth-first search with sleep sets and merged states; knows nothing of clusters |
| `instants` | time that stands still between two timers, and yet tells before from after |
| `setting` | what may happen: nodes or programs, requests, budgets of faults |
| `clients` | the requests, their order, and the history that the checker reads |
| `cluster` | the events of a cluster of the real core, and the judgement of an end |
| `held` | requests to a bucket that wait for their fate |
| `bucket` | the events of processes with the real code of a log on one bucket |
| `systems` | which of the two a setting means |
| `plain` | records as JSON and back, by their types |
| `campaign` | a search in parts, over the cores, kept in a file |
| `telling` | the first failure: made small, told, kept as a schedule |
| `graph` | all states of a small system, with every event that may happen in each |
| `shown`, `shown_bucket` | what a reader sees of a state: cards, sentences, messages, what the laws say |
| `book` | a search or a schedule as a book of the explorer's page |
"""
