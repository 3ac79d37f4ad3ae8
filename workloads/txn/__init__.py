"""What the two transactional workloads share: requests, generator, cycles of dependencies, consistency models.

    {"type": "txn", "txn": [["r", 1, null], ["w", 1, 6]]}
    {"type": "txn_ok", "txn": [["r", 1, 8], ["w", 1, 6]]}

A transaction is a list of micro-operations `[f, key, value]`: a read `r`, whose value the reply fills in, or a
write. A key that was never written reads as null. Keys and values are integers, and a key gets each value once.

A transaction has 1 to `--max-txn-length` micro-operations, each a read or a write with equal odds. Some
`--key-count` keys are in use at a time, drawn by `--key-dist`. Each is replaced by a fresh one after
`--max-writes-per-key` writes. Values count up from 1.

The result has

    valid?              False when something was found that `--consistency-models` forbid
    anomaly-types       what was found, as far as these models speak of it
    anomalies           the instances by type
    not, also-not       the weakest models that this rules out, and the stronger ones that fall with them

and no more than `valid?` where nothing was found. Names and rules are Elle's. [Kingsbury & Alvaro, Elle:
Inferring Isolation Anomalies from Experimental Observations, VLDB 2020; Adya, Weak Consistency, 1999]
"""
