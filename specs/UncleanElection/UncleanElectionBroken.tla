----------------------- MODULE UncleanElectionBroken -----------------------
(***************************************************************************)
(* Elections that lose committed messages, Raft's rule, and plain mistakes.*)
(***************************************************************************)
EXTENDS UncleanElection

\* for AtLeast: the replica with the latest offset
LatestOffset(r, s) == Len(log[r]) >= Len(log[s])

\* for AtLeast: the latest epoch of the last entry, then the latest offset
LatestEntry(r, s) ==
    \/ LastEpoch(r) > LastEpoch(s)
    \/ LastEpoch(r) = LastEpoch(s) /\ Len(log[r]) >= Len(log[s])

\* for MayCommit: Raft's rule, entries of earlier epochs are committed with one of the own epoch
OwnEpoch(r, n) == log[r][n].epoch = epoch

AnyLength(r, n) == TRUE                               \* for MayCommit: any entry that all have
Always == TRUE                                        \* for EpochsLeft
\* for EpochsLeft: each epoch appends while messages are left, which makes a search short
EachAppends == epoch < MaxEpoch /\ (sent >= epoch \/ sent = MaxMessages)
WhenTruncated(length) == TRUE                         \* for CoversWhen: it has fetched nothing yet
Responsive(f, l) == known[f].epoch = epoch            \* for CaughtUp: it fetches, and lags
=============================================================================
