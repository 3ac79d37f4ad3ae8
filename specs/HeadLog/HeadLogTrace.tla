---------------------------- MODULE HeadLogTrace ----------------------------
(***************************************************************************)
(* Is a trace of a node's protocol steps a behaviour of HeadLog? `Trace`   *)
(* and the sets in it come from the generated module TraceData; `at` walks *)
(* along it. Each event must be a step of HeadLog with exactly the numbers *)
(* it names. Two things no node can see may happen in between: a cas of    *)
(* unknown outcome takes effect (LateCommit), or a fence of unknown        *)
(* outcome does (LostSwitches: the epochs that one tried to begin).        *)
(*                                                                         *)
(* TLC is asked whether the end is never reached (NotAccepted): a          *)
(* violation means the trace is accepted. Otherwise the last step printed  *)
(* is the one that is no step of HeadLog, with the reason.                 *)
(***************************************************************************)
EXTENDS HeadLog, TraceData, TLC

VARIABLE at
traceVars == <<vars, at>>

e == Trace[at]
n == e.node

Written(count) == {k \in Keys : count[k] > 0}

RECURSIVE GroupOf(_)
GroupOf(ids) ==
    IF ids = <<>> THEN <<>>
    ELSE <<CHOOSE b \in Waiting(n) : b.id = Head(ids)>> \o GroupOf(Tail(ids))

IsWaiting(id) == \E b \in Waiting(n) : b.id = id
IdsOf(entries) == [i \in 1..Len(entries) |-> entries[i].id]

\* Why a cas with these ids is impossible, or "".
CasProblem(ids) ==
    IF known[n] = None THEN "the node has not read the head since its last conflict, timeout or restart"
    ELSE IF ~ObservedOpen(known[n]) THEN "the log is fenced: nothing may be appended"
    ELSE IF \E i \in 1..Len(ids) : ~IsWaiting(ids[i])
         THEN "a batch that this node was never given, or that is in the log already"
    ELSE IF \E i \in 1..Len(ids) : ~InEpoch(GroupOf(ids)[i], known[n].epoch)
         THEN "a batch of another epoch"
    ELSE IF ~HasRoom(n, known[n]) THEN "the tail is full and its segment not written"
    ELSE ""

SameEntry(logged, expected, slot) ==
    /\ logged.slot = slot
    /\ logged.count = expected.count
    /\ logged.commits = expected.commits
    /\ \A k \in Written(logged.count) : logged.first[k] = expected.first[k]

CommitProblem ==
    LET ids == IdsOf(e.entries) IN
    IF CasProblem(ids) # "" THEN CasProblem(ids)
    ELSE IF known[n] # head THEN "the head is no longer what the node read: this cas cannot have succeeded"
    ELSE LET expected == Request(n, GroupOf(ids)).entries IN
         IF \E i \in 1..Len(ids) :
               ~SameEntry(e.entries[i], expected[i], view[n].length + i - 1)
         THEN "slot or offsets are not those that follow the log"
         ELSE IF HeadAfter(n, known[n], expected).base # e.base
         THEN "the tail begins at another slot: sealed too early, or not sealed" ELSE ""

ConflictProblem ==
    IF known[n] = None THEN "the node has not read the head"
    ELSE IF Waiting(n) = {} THEN "the node has nothing to append"
    ELSE IF known[n] = head THEN "the head is what the node read: this cas cannot have failed" ELSE ""

SealProblem ==
    IF known[n] = None THEN "the node has not read the head"
    ELSE IF ~IsFull(n, known[n]) THEN "the tail is not full"
    ELSE IF known[n].base # e.base THEN "the tail begins at another slot" ELSE ""

\* A tail is full when it has as many entries as the trace says of its segment (FullTails: base ->
\* entries). The node may count bytes; the model needs only that all nodes agree.
FullInTrace(node, h) == h.base \in DOMAIN FullTails /\ Len(h.tail) = FullTails[h.base]

RefreshProblem ==
    IF CatchUp(view[n]).length # e.length THEN "the log has another length"
    ELSE IF head.epoch # e.epoch THEN "the log is in another epoch" ELSE ""

PollProblem ==
    LET answer == PollAnswer(view[n], e.key, e.from) IN
    IF Len(e.offsets) > Len(answer) \/ SubSeq(answer, 1, Len(e.offsets)) # e.offsets
    THEN "not a contiguous run of the node's view from the offset asked"
    ELSE IF e.offsets = <<>> /\ answer # <<>> THEN "nothing answered although the view has messages"
    ELSE ""

SendProblem ==
    IF batch[n] # None THEN "the node's batch before this one has no outcome yet"
    ELSE IF e.id # [node |-> n, incarnation |-> incarnation[n], seq |-> seq[n] + 1]
         THEN "not the next id of this life of the node"
    ELSE IF e.epoch > head.epoch THEN "an epoch that has not begun" ELSE ""

BatchProblem(id) ==
    IF batch[n] = None \/ batch[n].id # id THEN "not the node's batch in flight" ELSE ""

HandOverProblem ==
    IF BatchProblem(e.id) # "" THEN BatchProblem(e.id)
    ELSE IF e.to = n THEN "handed over to itself"
    ELSE IF InLog(view[n], e.id) THEN "the batch is in the log already" ELSE ""

SwitchProblem(from) ==
    IF head.state # from THEN "the log is in that state already"
    ELSE IF e.epoch # NextEpoch(head.epoch) THEN "not the next epoch" ELSE ""

\* A helper answers with its view when it is done with the batch. Right after its commit that is
\* HeadLog's answer; later, or after another commit, it is the result of a read of the head.
Answers == {a \in answers : /\ a.to = n /\ a.head.epoch = e.epoch
                            /\ Max(view[n].length, a.start + Len(a.entries)) = e.length}
AnsweredProblem ==
    IF Answers # {} THEN ""
    ELSE IF \A h \in handovers : h.batch.id.node # n THEN "the node has handed nothing over"
    ELSE RefreshProblem

AckedProblem ==
    IF BatchProblem(e.id) # "" THEN BatchProblem(e.id)
    ELSE IF ~InLog(view[n], e.id) THEN "the batch is not in the node's view of the log"
    ELSE IF \E k \in Written(batch[n].content.count) : AckOf(view[n], batch[n]).first[k] # e.first[k]
         THEN "not the offsets the log gave the batch" ELSE ""

RejectProblem ==
    IF BatchProblem(e.id) # "" THEN BatchProblem(e.id)
    ELSE IF known[n] = None THEN "the node has not read the head"
    ELSE IF ~IsOver(batch[n], known[n]) THEN "a definite error although the batch's epoch is not over"
    ELSE IF InLog(view[n], e.id) THEN "a definite error although the batch is in the log" ELSE ""

WorkProblem(phase) ==
    IF worker[n].phase # phase THEN "not the next step of the node's compaction job"
    ELSE IF worker[n].base # e.base THEN "another segment than the one claimed" ELSE ""

ClaimProblem ==
    IF worker[n].phase # "idle" THEN "the node has a compaction job already"
    ELSE IF ~MayCompact(task.cursor) THEN "not enough sealed segments behind the cursor"
    ELSE IF e.epoch # ClaimEpoch THEN "not the next epoch of the task"
    ELSE IF e.base # task.cursor THEN "not the segment at the cursor" ELSE ""

CursorProblem ==
    IF WorkProblem("deleted") # "" THEN WorkProblem("deleted")
    ELSE IF ~CasClaim(worker[n]) THEN "the claim is stale: a newer epoch holds the task" ELSE ""

ReleaseProblem ==
    IF worker[n].phase = "idle" THEN "the node has no compaction job"
    ELSE IF worker[n].phase # "done" /\ CasClaim(worker[n])
         THEN "the job is not finished and its claim still holds" ELSE ""

Problem ==
    CASE e.step = "Send" -> SendProblem
      [] e.step = "Commit" -> CommitProblem
      [] e.step = "Conflict" -> ConflictProblem
      [] e.step = "Unknown" -> CasProblem(e.ids)
      [] e.step = "Seal" -> SealProblem
      [] e.step = "Refresh" -> RefreshProblem
      [] e.step = "Poll" -> PollProblem
      [] e.step = "HandOver" -> HandOverProblem
      [] e.step = "Answered" -> AnsweredProblem
      [] e.step = "Acked" -> AckedProblem
      [] e.step = "Reject" -> RejectProblem
      [] e.step = "Abandon" -> BatchProblem(e.id)
      [] e.step = "Restart" -> IF e.incarnation > incarnation[n] THEN "" ELSE "not a fresh incarnation"
      [] e.step = "Fence" -> SwitchProblem("open")
      [] e.step = "Unfence" -> SwitchProblem("fenced")
      [] e.step = "Claim" -> ClaimProblem
      [] e.step = "CompactWrite" -> WorkProblem("claimed")
      [] e.step = "CompactDelete" -> WorkProblem("written")
      [] e.step = "CompactCursor" -> CursorProblem
      [] e.step = "Release" -> ReleaseProblem
      [] e.step = "GiveUp" -> IF worker[n].phase = "idle" THEN "the node has no compaction job" ELSE ""

Do ==
    CASE e.step = "Send" -> SendIn(n, [count |-> e.count, commits |-> e.commits], e.epoch)
      [] e.step = "Commit" -> CommitGroup(n, GroupOf(IdsOf(e.entries)))
      [] e.step = "Conflict" -> Conflict(n)
      [] e.step = "Unknown" -> UnknownGroup(n, GroupOf(e.ids))
      [] e.step = "Seal" -> Seal(n)
      [] e.step = "Refresh" -> Refresh(n)
      [] e.step = "Poll" -> UNCHANGED vars
      [] e.step = "HandOver" ->  \* the same message again, or one that is still under way
            IF \E h \in handovers : <<h.to, h.batch>> = <<e.to, batch[n]>>
            THEN UNCHANGED vars ELSE HandOver(n, e.to)
      [] e.step = "Answered" ->
            IF Answers = {} THEN Refresh(n) ELSE \E a \in Answers : AnsweredWith(n, a)
      [] e.step = "Acked" -> Acked(n)
      [] e.step = "Reject" -> Reject(n)
      [] e.step = "Abandon" -> Abandon(n)
      [] e.step = "Restart" -> RestartAs(n, e.incarnation)
      [] e.step = "Fence" -> Fence
      [] e.step = "Unfence" -> Unfence
      [] e.step = "Claim" -> Claim(n)
      [] e.step = "CompactWrite" -> CompactWrite(n)
      [] e.step = "CompactDelete" -> CompactDelete(n)
      [] e.step = "CompactCursor" -> CompactCursor(n)
      [] e.step = "Release" -> Release(n)
      [] e.step = "GiveUp" -> GiveUp(n)

TraceInit == Init /\ at = 1 /\ TLCSet(1, 0)

\* Print how far the trace was followed, and the error in the step after that.
Tell ==
    IF at >= TLCGet(1) /\ Problem # ""
    THEN TLCSet(1, at) /\ PrintT(<<"STUCK", at, Problem>>) ELSE TRUE

TraceNext ==
    /\ at <= Len(Trace)
    /\ \/ Tell /\ Problem = "" /\ Do /\ at' = at + 1
       \/ LateCommit /\ UNCHANGED at
       \/ NextEpoch(head.epoch) \in LostSwitches /\ (Fence \/ Unfence) /\ UNCHANGED at

TraceSpec == TraceInit /\ [][TraceNext]_traceVars
NotAccepted == at <= Len(Trace)
=============================================================================
