"""S3-Queue, a published log on object storage, beside ours: as it was published, and repaired.

A comparison, not the product: it is not installed, and keeps nothing that ours reads. Both protocols stand on
the store port (`leaderless.store.port`), so that the simulator and the programs that measure put them on the
same objects as our log.

| module | what is in it |
|---|---|
| `records` | the objects of a topic, limits, errors |
| `published` | `Topic`: the protocol as published, with six weaknesses |
| `repaired` | `RepairedTopic`: the same, with the smallest changes that mend five of them |
| `client` | a client library that repeats every request, as such libraries do by default |

`docs/evidence/s3-queue.md` tells what is wrong in the published one, and how the simulator finds it.
"""
