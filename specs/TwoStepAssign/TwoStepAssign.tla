--------------------------- MODULE TwoStepAssign ---------------------------
(***************************************************************************)
(* The Leaderless Log Protocol on a store that cannot increment a counter  *)
(* and write an index entry in one step. One cas of the counter object     *)
(* advances it and leaves the entry in it as pending; a second step        *)
(* materialises the entry in the index. The writer does it, or, when it    *)
(* died, the next writer.                                                  *)
(*                                                                         *)
(* As published for S3, pending is materialised by an unconditional put,   *)
(* and never cleared: so section 16.1 and the Rust. Sections 4.1 and 8.1   *)
(* clear it after that put, which is too late. Repaired: an index entry is *)
(* only ever CREATED, and compaction deletes by leaving a tombstone, which *)
(* counts as existing.                                                     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Writers, MaxOffset, RangeFirst, RangeLast, None

VARIABLES
    counter,    \* [next, pending]: pending is an end offset (batches of one), 0 for none
    index,      \* offset -> [type, msgCount]
    cursor,     \* the first offset not compacted
    writer,     \* [phase, seen, own]: the counter as read, the offset assigned
    compactor,
    readable    \* ghost: offsets that were readable at some moment

vars == <<counter, index, cursor, writer, compactor, readable>>

Offsets == 1..MaxOffset
Empty == [type |-> "EMPTY", msgCount |-> 0]
Tombstone == [type |-> "TOMBSTONE", msgCount |-> 0]
Wal == [type |-> "WAL", msgCount |-> 1]
Compacted == [type |-> "COMPACTED", msgCount |-> RangeLast - RangeFirst + 1]
Idle == [phase |-> "idle", seen |-> None, own |-> 0]

HasMessages(i, o) == i[o].type \in {"WAL", "COMPACTED"}
Readable(i) == {off \in Offsets : \E o \in off..MaxOffset :
                                     HasMessages(i, o) /\ o - i[o].msgCount + 1 <= off}

Init ==
    /\ counter = [next |-> 1, pending |-> 0]
    /\ index = [o \in Offsets |-> Empty]
    /\ cursor = 1
    /\ writer = [w \in Writers |-> Idle]
    /\ compactor = "idle"
    /\ readable = {}

-----------------------------------------------------------------------------
Put(old) == IF old = Empty THEN Wal ELSE old  \* create: a no-op where something is or was
DeletedEntry == Tombstone
MayAppend == TRUE     \* at any time, also while a compaction runs
MayCompact == TRUE    \* at any time, also while an append runs
NextAfter == counter.next + 1
CursorAfter == RangeLast + 1
PendingAfter == counter.next

\* A step that changes the index; offsets that become readable are remembered.
SetIndex(i) == index' = i /\ readable' = readable \union Readable(i)
Materialise(o) == SetIndex(IF o = 0 THEN index ELSE [index EXCEPT ![o] = Put(@)])

Move(w, from, to) ==
    /\ writer[w].phase = from
    /\ writer' = [writer EXCEPT ![w].phase = to]

ReadCounter(w) ==
    /\ writer[w].phase = "idle"
    /\ MayAppend
    /\ counter.next <= MaxOffset
    /\ writer' = [writer EXCEPT ![w] = [phase |-> "read", seen |-> counter, own |-> 0]]
    /\ UNCHANGED <<counter, index, cursor, compactor, readable>>

\* Before its own cas a writer materialises the pending entry of the counter that it read.
MaterialisePending(w) ==
    /\ Move(w, "read", "ready")
    /\ Materialise(writer[w].seen.pending)
    /\ UNCHANGED <<counter, cursor, compactor>>

CasCounter(w) ==
    /\ writer[w].phase = "ready"
    /\ IF counter = writer[w].seen
       THEN /\ counter' = [next |-> NextAfter, pending |-> PendingAfter]
            /\ writer' = [writer EXCEPT ![w].phase = "assigned", ![w].own = counter.next]
       ELSE /\ writer' = [writer EXCEPT ![w] = Idle]
            /\ UNCHANGED counter
    /\ UNCHANGED <<index, cursor, compactor, readable>>

MaterialiseOwn(w) ==
    /\ writer[w].phase = "assigned"
    /\ Materialise(writer[w].own)
    /\ writer' = [writer EXCEPT ![w] = Idle]
    /\ UNCHANGED <<counter, cursor, compactor>>

WriterCrash(w) ==  \* at any step; the offset it assigned stays pending
    /\ writer[w].phase # "idle"
    /\ writer' = [writer EXCEPT ![w] = Idle]
    /\ UNCHANGED <<counter, index, cursor, compactor, readable>>

\* A reader at the end, or a compactor, needs the newest entry and materialises it too.
Help ==
    /\ counter.pending # 0
    /\ index[counter.pending] = Empty
    /\ Materialise(counter.pending)
    /\ UNCHANGED <<counter, cursor, writer, compactor>>

-----------------------------------------------------------------------------
Compacts(from, to) == compactor = from /\ compactor' = to

CompactStart ==
    /\ Compacts("idle", "write")
    /\ MayCompact
    /\ \A o \in RangeFirst..RangeLast : index[o].type = "WAL"
    /\ UNCHANGED <<counter, index, cursor, writer, readable>>

CompactWrite ==
    /\ Compacts("write", "delete")
    /\ SetIndex([index EXCEPT ![RangeLast] = Compacted])
    /\ UNCHANGED <<counter, cursor, writer>>

CompactDelete ==
    /\ Compacts("delete", "cursor")
    /\ SetIndex([o \in Offsets |-> IF o \in RangeFirst..(RangeLast - 1)
                                   THEN DeletedEntry ELSE index[o]])
    /\ UNCHANGED <<counter, cursor, writer>>

CompactCursor ==
    /\ Compacts("cursor", "done")
    /\ cursor' = CursorAfter
    /\ UNCHANGED <<counter, index, writer, readable>>

Next ==
    \/ \E w \in Writers :
          \/ ReadCounter(w) \/ MaterialisePending(w) \/ CasCounter(w)
          \/ MaterialiseOwn(w) \/ WriterCrash(w)
    \/ Help \/ CompactStart \/ CompactWrite \/ CompactDelete \/ CompactCursor

Spec == Init /\ [][Next]_vars
HelpIsFair == WF_vars(Help)
FairSpec == Spec /\ HelpIsFair

-----------------------------------------------------------------------------
TypeOK ==
    /\ counter.next \in 1..(MaxOffset + 1)
    /\ counter.pending \in 0..MaxOffset
    /\ \A o \in Offsets : index[o].type \in {"EMPTY", "WAL", "COMPACTED", "TOMBSTONE"}
    /\ cursor \in {1, RangeLast + 1}

\* An offset that could be read once can be read for ever.
CommittedStaysReadable == readable \subseteq Readable(index)

\* Every assigned offset is in the index, or it is the pending one.
NoOffsetLost ==
    \A o \in 1..(counter.next - 1) : o \in Readable(index) \/ o = counter.pending

\* Behind the cursor there is only the compacted entry.
CompactedStays ==
    cursor > RangeLast =>
        /\ index[RangeLast] = Compacted
        /\ \A o \in RangeFirst..(RangeLast - 1) : ~HasMessages(index, o)

AssignedBecomesReadable ==
    \A o \in Offsets : (counter.next > o) ~> (o \in Readable(index))
=============================================================================
