------------------------ MODULE LeaderlessLogBroken ------------------------
(***************************************************************************)
(* Wrong decisions; each replaces the one that it names.                   *)
(***************************************************************************)
EXTENDS LeaderlessLogProperties

\* for CounterSeen: the counter was read when the batch began, one append ago at the latest.
StaleCounter(w) == IF sequenceCounter > 1 /\ logState = "OPEN" THEN sequenceCounter - 1
                   ELSE sequenceCounter
\* for CounterAfter: a hole behind every batch; and a counter that forgets the batch's size.
CounterSkips(end) == end + 2
CounterForgetsSize(end) == sequenceCounter + 1
\* for CounterOnUnfence: opening the log again starts a fresh counter, from 0 or from 1.
CounterFromZero == 0
CounterFromOne == 1
\* for WalEntry: an entry of a type that no reader knows.
TornEntry(count) == [type |-> "TORN", msgCount |-> count]
\* for SeesOpen: writers do not look at the log's state.
StateIgnored == TRUE
\* for CompactedEntry: the range's entry stays a WAL entry, or is lost.
StillWal == [type |-> "WAL", msgCount |-> Last - First + 1]
NotWritten == Empty
\* for Deleted: nothing, everything, or everything from the log's beginning.
NothingDeleted == {}
AllDeleted == Offsets
DeletedFromBeginning == 1..(Last - 1)
\* for CursorAfter: one too far.
CursorTooFar == Last + 2
\* for WritesFirst: delete, then write.
DeleteFirst == FALSE
\* for MayCrash: a compactor that never dies.
NoCrash == FALSE
\* for ReadersAreFair: with the weak form a writer that always appends need never read again.
ReadersStronglyFair == \A w \in Writers, off \in Offsets : SF_vars(ReadEntry(w, off))
\* for the fairness conditions.
NotFair == TRUE
=============================================================================
