--------------------------- MODULE HeadLogBroken ---------------------------
(***************************************************************************)
(* Wrong decisions: each stands in for the one of the same place in        *)
(* HeadLog or Views (the manifest says which), and each breaks a promise.  *)
(***************************************************************************)
EXTENDS HeadLogProperties

\* for FirstOffset: offsets counted in the tail only, as if nothing had been sealed.
FirstOffsetInTail(v, k) == IF v.length > TailLimit THEN 0 ELSE EndOffset(v.blocks[k])

\* for IsCommitted: the committer adds a batch without looking for it in the log ...
DedupSkipped(n, id) == FALSE

\* ... or looks for its own batches only and trusts the sender of a handed-over batch.
HandOverTrusted(n, id) == id.node = n /\ InLog(view[n], id)

\* for HasOutcome: the client is answered before the batch is in the log.
AnsweredEarly(v, id) == TRUE

\* for SameHead: the store compares only how long the log is, not state and epoch.
SameLength(a, b) == a.base + Len(a.tail) = b.base + Len(b.tail)

\* for ObservedOpen: nodes append whatever the head's state.
StateIgnored(h) == TRUE

\* for NextEpoch: fencing does not raise the epoch, so a head value can return.
EpochKept(epoch) == epoch
OverWhenFenced(b, h) == h.state = "fenced"  \* for IsOver, which then cannot go by the epoch

\* for WriterOf: a restarted node goes on under its old name and counts from 1 again.
SameWriter(n) == <<n, 0>>

\* for InEpoch: a helper commits a batch after the epoch in which it was made.
EpochUnchecked(b, epoch) == TRUE

\* for EndIsExpected: a batch is added wherever its key ends by now.
AnyEnd(v, b) == TRUE

\* for TokenIsHighest: who holds an older token goes on beside the one that replaced it.
AnyToken(v, b) == TRUE

\* for KeysAreOpen: a close is a token like others, and keeps no batch out that has none.
NeverClosed(v, b) == TRUE

\* for IsKeptOut: a batch is refused while its key ends elsewhere, also where it may end there later.
ElsewhereIsKeptOut(v, b) == ~EndIsExpected(v, b)

\* for IsSealed, with FreedByNumber: the base moves before the segment is written.
SealSkipped(h) == TRUE

\* for Freed: a segment with the tail's number is taken for the tail, whatever it holds.
FreedByNumber(n, h) == Len(h.tail)

\* for SegmentWrite: the segment is written blindly, over a tombstone too.
BlindWrite(old, tail) == tail

\* for CatchUp: a reader takes the tail only, without the segments it missed.
TailOnly(v) == FromTail(v)

\* for Follows: the entries of an answer are taken although some before them are missing.
GapIgnored(v, start) == TRUE

\* for PollAnswer: an exact look-up instead of the ceiling; a block that began earlier is missed.
ExactLookUp(v, k, from) == Flatten(SelectSeq(v.blocks[k], LAMBDA b : b.first >= from))

\* for RunOf: the run keeps the messages but forgets which seq each writer had reached.
RunWithoutWriters(segment) == [Fold(segment) EXCEPT !.latest = [w \in Writers |-> 0]]

\* for ReadyToDelete and DeletedUpTo: the segment is deleted before the run is written.
DeleteFirst == "claimed"
Unwritten(b) == b + 1

\* for CasClaim: the cursor moves without a look at the claim.
ClaimIgnored(w) == TRUE

\* for CursorAfter: a stale worker moves the cursor on by the length of its run; or it
\* sets the cursor from the value that it read when it claimed.
CursorOnceMore(w) == task.cursor + runs[w.base].length
CursorFromClaim(w) == w.base + runs[w.base].length

\* for ClaimEpoch: taking over a claim keeps its epoch.
SameClaimEpoch == Max(1, task.epoch)

\* for IsFull: the tail grows and is never sealed.
NeverFull(n, h) == FALSE

\* for Fairness: the store may leave a node's cas unanswered for ever.
NoCommitFairness == \A n \in Nodes : WF_vars(Refresh(n)) /\ WF_vars(Acked(n))
CommitOnlyFairness == \A n \in Nodes : SF_vars(Commit(n))
=============================================================================
