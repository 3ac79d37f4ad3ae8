"""The leaderless log: one head register, sealed segments, group commit, combining.

    head        {state, epoch, version, by, sealed, base, size, tail}      see `head`
    segment/S   {base, entries}                                            the S-th sealed tail; never changes
    entry       [writer, seq, {key: [first_offset, [msg, ...]]}, {key: committed_offset}]

Theory of operation. Every send and every committed offset waits in the `producer`, which makes one *batch*
at a time of all that waits. A batch is committed by this node's `committer`, or handed over to the node that
committed last, when the `economics` say that this is cheaper. A committer puts all batches it holds into
one compare-and-set of the head, which at once assigns their offsets and publishes them. The `replica` folds
the entries of the head and of the segments into a view, always a prefix of the log; the `consumer` answers
polls from it. A batch is done when the view contains it, whichever node committed it.
"""
