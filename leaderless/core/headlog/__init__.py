"""The leaderless log: one head register, sealed segments, group commit, combining.

    head        {state, epoch, version, by, sealed, base, size, shape, entries}      see `records`
    segment/S   {base, entries}                                                      never changes
    entry       [writer, seq, {key: [first_offset, [msg, ...]]}, {key: committed_offset}]

What waits is in `pending`. The `writer` makes a *batch* of it. The `committer` commits it, or the node that
committed last: the `policy` says which is cheaper. An `attempt` puts all batches that are at a node behind the
head by one compare-and-set, which assigns their offsets and publishes them. The `replica` folds the entries of
the head and of the segments into a `view`, always a prefix of the log. The `consumer` answers polls from it.
A batch is done when the view contains it, whichever node committed it.
"""
