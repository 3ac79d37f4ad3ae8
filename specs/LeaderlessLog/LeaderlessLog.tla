--------------------------- MODULE LeaderlessLog ---------------------------
(***************************************************************************)
(* The published Leaderless Log Protocol: writers take offsets from a      *)
(* shared counter and leave index entries keyed by the END offset of a     *)
(* batch; a compactor replaces a range of them in three steps; readers     *)
(* find an offset by ceiling look-up. Counter and index entry change in    *)
(* one step here, as published; TwoStepAssign models what stores can do.   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Writers,
    MaxOffset,  \* the offset space is 1..MaxOffset
    MaxBatch,
    Rounds      \* the ranges to compact, in order: <<<<first, last>>, ...>>

VARIABLES
    logIndex,          \* end offset -> [type, msgCount]
    sequenceCounter,   \* the next offset to assign
    logState,          \* "OPEN" or "FENCED"
    compactionCursor,  \* the first offset not compacted
    writerState, writerOffset, writerBatchSize,
    compactorState, compactRound,
    readerResult,      \* the result of each writer's last read
    timesAssigned      \* ghost: how often each offset was given out (2: twice or more)

vars == <<logIndex, sequenceCounter, logState, compactionCursor, writerState, writerOffset,
          writerBatchSize, compactorState, compactRound, readerResult, timesAssigned>>
writing == <<writerState, writerOffset, writerBatchSize>>
compacting == <<compactorState, compactRound>>

Offsets == 1..MaxOffset
Empty == [type |-> "EMPTY", msgCount |-> 0]
First == Rounds[compactRound][1]
Last == Rounds[compactRound][2]

StartOf(o) == o - logIndex[o].msgCount + 1
Covers(o, off) == logIndex[o].type # "EMPTY" /\ StartOf(o) <= off /\ off <= o
IsCovered(off) == \E o \in off..MaxOffset : Covers(o, off)

Init ==
    /\ logIndex = [o \in Offsets |-> Empty]
    /\ sequenceCounter = 1
    /\ logState = "OPEN"
    /\ compactionCursor = 1
    /\ writerState = [w \in Writers |-> "IDLE"]
    /\ writerOffset = [w \in Writers |-> 0]
    /\ writerBatchSize = [w \in Writers |-> 0]
    /\ compactorState = "IDLE"
    /\ compactRound = 1
    /\ readerResult = [w \in Writers |-> "NONE"]
    /\ timesAssigned = [o \in Offsets |-> 0]

-----------------------------------------------------------------------------
(* Decisions, each with a name so that a broken one can replace it.        *)

CounterSeen(w) == sequenceCounter  \* increment and read are one step
CounterAfter(end) == end + 1
CounterOnUnfence == sequenceCounter
WalEntry(count) == [type |-> "WAL", msgCount |-> count]
SeesOpen == logState = "OPEN"
CompactedEntry == [type |-> "COMPACTED", msgCount |-> Last - First + 1]
Deleted == First..(Last - 1)
CursorAfter == Last + 1
WritesFirst == TRUE                \* the compacted entry before the deletion

\* As published: the range is covered by WAL entries and none begins before it. (An entry that
\* ends behind the range is overlooked.)
CoveredByWal ==
    /\ \A off \in First..Last :
          \E o \in off..MaxOffset : logIndex[o].type = "WAL" /\ Covers(o, off)
    /\ \A o \in First..Last : logIndex[o].type # "EMPTY" => StartOf(o) >= First

MayCompact == CoveredByWal
MayCrash == TRUE

-----------------------------------------------------------------------------
(* Writers.                                                                *)

Move(w, from, to) ==
    /\ writerState[w] = from
    /\ writerState' = [writerState EXCEPT ![w] = to]

StartAppend(w) ==
    /\ logState = "OPEN"
    /\ Move(w, "IDLE", "WRITING_WAL")
    /\ \E count \in 1..MaxBatch : writerBatchSize' = [writerBatchSize EXCEPT ![w] = count]
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writerOffset,
                   compacting, readerResult, timesAssigned>>

WALWriteSuccess(w) ==
    /\ Move(w, "WRITING_WAL", "ASSIGNING_OFFSET")
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writerOffset,
                   writerBatchSize, compacting, readerResult, timesAssigned>>

WALWriteFail(w) ==
    /\ Move(w, "WRITING_WAL", "FAILED")
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writerOffset,
                   writerBatchSize, compacting, readerResult, timesAssigned>>

EndOf(w) == CounterSeen(w) + writerBatchSize[w] - 1

\* The whole assignment at once: counter, index entry, and the look at the log's state.
AssignOffset(w) ==
    /\ SeesOpen
    /\ EndOf(w) <= MaxOffset
    /\ Move(w, "ASSIGNING_OFFSET", "DONE")
    /\ sequenceCounter' = CounterAfter(EndOf(w))
    /\ logIndex' = [logIndex EXCEPT ![EndOf(w)] = WalEntry(writerBatchSize[w])]
    /\ writerOffset' = [writerOffset EXCEPT ![w] = EndOf(w)]
    /\ timesAssigned' = [o \in Offsets |->
          IF CounterSeen(w) <= o /\ o <= EndOf(w) /\ timesAssigned[o] < 2
          THEN timesAssigned[o] + 1 ELSE timesAssigned[o]]
    /\ UNCHANGED <<logState, compactionCursor, writerBatchSize, compacting, readerResult>>

AssignOffsetFenced(w) ==
    /\ logState = "FENCED"
    /\ Move(w, "ASSIGNING_OFFSET", "FAILED")
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writerOffset,
                   writerBatchSize, compacting, readerResult, timesAssigned>>

AssignOffsetExhausted(w) ==  \* the model's offset space is finite
    /\ logState = "OPEN"
    /\ EndOf(w) > MaxOffset
    /\ Move(w, "ASSIGNING_OFFSET", "FAILED")
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writerOffset,
                   writerBatchSize, compacting, readerResult, timesAssigned>>

AppendComplete(w) ==
    /\ Move(w, "DONE", "IDLE") \/ Move(w, "FAILED", "IDLE")
    /\ writerOffset' = [writerOffset EXCEPT ![w] = 0]
    /\ writerBatchSize' = [writerBatchSize EXCEPT ![w] = 0]
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, compacting,
                   readerResult, timesAssigned>>

-----------------------------------------------------------------------------
(* The compactor, its three steps, and its death between any two.          *)

Step(from, to) == compactorState = from /\ compactorState' = to

CompactStart ==
    /\ Step("IDLE", "WRITING_COMPACTED_INDEX")
    /\ MayCompact
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writing,
                   compactRound, readerResult, timesAssigned>>

WriteIndex == logIndex' = [logIndex EXCEPT ![Last] = CompactedEntry]
DeleteIndex == logIndex' = [o \in Offsets |-> IF o \in Deleted THEN Empty ELSE logIndex[o]]

CompactWriteCompactedIndex ==
    /\ Step("WRITING_COMPACTED_INDEX", "DELETING_OLD")
    /\ IF WritesFirst THEN WriteIndex ELSE DeleteIndex
    /\ UNCHANGED <<sequenceCounter, logState, compactionCursor, writing, compactRound,
                   readerResult, timesAssigned>>

CompactDeleteOldEntries ==
    /\ Step("DELETING_OLD", "UPDATING_CURSOR")
    /\ IF WritesFirst THEN DeleteIndex ELSE WriteIndex
    /\ UNCHANGED <<sequenceCounter, logState, compactionCursor, writing, compactRound,
                   readerResult, timesAssigned>>

CompactUpdateCursor ==
    /\ Step("UPDATING_CURSOR", "DONE")
    /\ compactionCursor' = CursorAfter
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, writing, compactRound, readerResult,
                   timesAssigned>>

CompactReset ==
    /\ Step("DONE", "IDLE")
    /\ compactRound' = IF compactRound < Len(Rounds) THEN compactRound + 1 ELSE compactRound
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writing,
                   readerResult, timesAssigned>>

CompactorCrash ==
    /\ MayCrash
    /\ compactorState \in {"WRITING_COMPACTED_INDEX", "DELETING_OLD", "UPDATING_CURSOR"}
    /\ compactorState' = "IDLE"
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writing,
                   compactRound, readerResult, timesAssigned>>

-----------------------------------------------------------------------------
FenceLog ==
    /\ logState = "OPEN" /\ logState' = "FENCED"
    /\ UNCHANGED <<logIndex, sequenceCounter, compactionCursor, writing, compacting,
                   readerResult, timesAssigned>>

UnfenceLog ==
    /\ logState = "FENCED" /\ logState' = "OPEN"
    /\ sequenceCounter' = CounterOnUnfence
    /\ UNCHANGED <<logIndex, compactionCursor, writing, compacting, readerResult, timesAssigned>>

ReadEntry(w, off) ==
    /\ writerState[w] = "IDLE"
    /\ off < sequenceCounter
    /\ readerResult' = [readerResult EXCEPT ![w] = IF IsCovered(off) THEN "OK" ELSE "ERROR"]
    /\ UNCHANGED <<logIndex, sequenceCounter, logState, compactionCursor, writing, compacting,
                   timesAssigned>>

Next ==
    \/ \E w \in Writers :
          \/ StartAppend(w) \/ WALWriteSuccess(w) \/ WALWriteFail(w)
          \/ AssignOffset(w) \/ AssignOffsetFenced(w) \/ AssignOffsetExhausted(w)
          \/ AppendComplete(w)
    \/ CompactStart \/ CompactWriteCompactedIndex \/ CompactDeleteOldEntries
    \/ CompactUpdateCursor \/ CompactReset \/ CompactorCrash
    \/ FenceLog \/ UnfenceLog
    \/ \E w \in Writers, off \in Offsets : ReadEntry(w, off)

\* Published: each of the three outcomes of an assignment is strongly fair, for a fence may toggle
\* for ever. That one of them comes is less to ask, and TLC checks it 64 times as fast.
AssignmentEnds(w) == AssignOffset(w) \/ AssignOffsetFenced(w) \/ AssignOffsetExhausted(w)
WritersAreFair ==
    \A w \in Writers :
        /\ WF_vars(StartAppend(w)) /\ WF_vars(WALWriteSuccess(w))
        /\ WF_vars(AssignmentEnds(w)) /\ WF_vars(AppendComplete(w))

CompactorIsFair ==
    /\ WF_vars(CompactStart) /\ WF_vars(CompactWriteCompactedIndex)
    /\ WF_vars(CompactDeleteOldEntries) /\ WF_vars(CompactUpdateCursor) /\ WF_vars(CompactReset)

ReadersAreFair == \A w \in Writers, off \in Offsets : WF_vars(ReadEntry(w, off))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WritersAreFair /\ CompactorIsFair /\ ReadersAreFair
=============================================================================
