---------------------- MODULE LeaderlessLogProperties ----------------------
(***************************************************************************)
(* The published properties, and beside each weak one the strong form.     *)
(***************************************************************************)
EXTENDS LeaderlessLog

TypeOK ==
    /\ \A o \in Offsets : /\ logIndex[o].type \in {"WAL", "COMPACTED", "EMPTY"}
                          /\ logIndex[o].msgCount \in 0..MaxOffset
    /\ sequenceCounter \in 1..(MaxOffset + 1)
    /\ compactionCursor \in 1..(MaxOffset + 1)
    /\ logState \in {"OPEN", "FENCED"}
    /\ \A w \in Writers :
          /\ writerState[w] \in {"IDLE", "WRITING_WAL", "ASSIGNING_OFFSET", "DONE", "FAILED"}
          /\ writerOffset[w] \in 0..MaxOffset
          /\ writerBatchSize[w] \in 0..MaxBatch
          /\ readerResult[w] \in {"NONE", "OK", "ERROR"}

\* Weak: an index is a function, so this can only fail on an unknown type.
NoOffsetDuplicates == \A o \in Offsets : logIndex[o].type \in {"WAL", "COMPACTED", "EMPTY"}
\* Strong: no offset is given out twice.
OffsetsAssignedOnce == \A o \in Offsets : timesAssigned[o] <= 1

\* Weak: a lower bound. Strong: the counter never goes back.
MonotonicOffsets == sequenceCounter >= 1
CounterNeverDecreases == [][sequenceCounter' >= sequenceCounter]_vars

\* Weak: reads the guard back. Strong: no step assigns an offset while the log is fenced.
FencedRejectsAppends == logState = "FENCED" => \A w \in Writers : ~ENABLED AssignOffset(w)
NothingAssignedWhileFenced == [][timesAssigned' # timesAssigned => logState = "OPEN"]_vars

CompactionPreservesData ==
    compactorState \in {"DELETING_OLD", "UPDATING_CURSOR", "DONE"} =>
        logIndex[Last].type = "COMPACTED"

NoPhantomEntries ==
    compactorState \in {"UPDATING_CURSOR", "DONE"} =>
        \A o \in First..(Last - 1) : logIndex[o].type = "EMPTY"

CursorConsistency == compactionCursor <= sequenceCounter

Overlap(a, b) ==
    /\ logIndex[a].type # "EMPTY" /\ logIndex[b].type # "EMPTY"
    /\ a < b /\ StartOf(b) <= a

\* Weak: WAL entries only.
NoOverlappingRanges ==
    \A a, b \in Offsets :
        logIndex[a].type = "WAL" /\ logIndex[b].type = "WAL" => ~Overlap(a, b)
\* Strong: entries overlap only where a compacted one waits for its old ones to be deleted.
OverlapsOnlyWhileCompacting ==
    \A a, b \in Offsets :
        Overlap(a, b) => /\ logIndex[b].type = "COMPACTED"
                         /\ StartOf(b) <= StartOf(a)
                         /\ compactionCursor <= b

NoReaderError == \A w \in Writers : readerResult[w] # "ERROR"

SequentialCompactionSafety ==
    \A r \in 1..(compactRound - 1) : logIndex[Rounds[r][2]].type = "COMPACTED"

AppendProgress ==
    \A w \in Writers : writerState[w] = "WRITING_WAL" ~> writerState[w] \in {"DONE", "FAILED"}

\* Weak: a crash counts as completion. Strong: once no more crashes come, a round that wrote its
\* compacted entry is finished.
CompactionCompletes ==
    compactorState = "WRITING_COMPACTED_INDEX" ~> compactorState \in {"DONE", "IDLE"}
WrittenRoundCompletes ==
    <>[][~CompactorCrash]_vars =>
        \A r \in 1..Len(Rounds) :
            logIndex[Rounds[r][2]].type = "COMPACTED" ~> compactionCursor > Rounds[r][2]

\* Weak: vacuous, no read fails. Strong: every assigned offset is readable at every moment.
ReaderEventuallySucceeds ==
    \A w \in Writers : readerResult[w] = "ERROR" ~> readerResult[w] = "OK"
AssignedStaysReadable == \A off \in 1..(sequenceCounter - 1) : IsCovered(off)

-----------------------------------------------------------------------------
(* The repair of both findings: a range ends where an entry ends, and a    *)
(* round that crashed after its first step may be taken up again.          *)

MayCompactRepaired ==
    \/ CoveredByWal /\ logIndex[Last].type # "EMPTY"
    \/ logIndex[Last].type = "COMPACTED" /\ compactionCursor <= Last

TwoRounds == <<<<1, 3>>, <<4, 5>>>>
PublishedLongRounds == <<<<1, 5>>, <<6, 8>>>>
OneRound == <<<<1, 3>>>>

WriterSymmetry == {p \in [Writers -> Writers] : \A a, b \in Writers : a # b => p[a] # p[b]}
=============================================================================
