------------------------------ MODULE HeadLog ------------------------------
(***************************************************************************)
(* A leaderless log on one linearizable register, the head: the newest     *)
(* entries inline, the older ones in immutable segments. Any node appends  *)
(* with a compare-and-set of the head from the value it last read; that    *)
(* one step assigns the offsets and publishes the entry.                   *)
(*                                                                         *)
(* Law 1: a cas that changes the head comes from exactly the head that the *)
(*        node's view was folded from. Hence it knows every committed seq, *)
(*        and a batch that is retried or handed over is added only once.   *)
(* Law 2: a head value never comes back (ids are never used twice, every   *)
(*        fence raises the epoch), so a late cas can do no harm.           *)
(* Law 3: a segment is written before the head lets go of its entries, and *)
(*        the head lets go of exactly those that the segment holds; a run  *)
(*        is written before its segment is overwritten by a tombstone.     *)
(***************************************************************************)
EXTENDS Views

CONSTANTS
    None, Tombstone,
    TailLimit,    \* a tail of this many entries (or more, after a group commit) is full: the most that
                  \* any node would choose for a new log
    RunSegments,  \* segments that become one run
    Contents,     \* what a batch may be: [count: Keys -> Nat, commits: Names -> Nat,
                  \* expected: Conditioned -> Nat or -1]: where keys must end before it, -1: anywhere
    MaxSlots,     \* room for segments (no bound on behaviour)
    MaxSeq,       \* batches per life of a node
    MaxEpoch,     \* fences, unfences and other new epochs
    MaxInFlight,  \* cas requests of unknown outcome at one time
    MaxHandOvers, \* hand-over messages in the network at one time
    MaxClaims,    \* claims of the compaction task
    MayAbandon,   \* whether a node may leave a batch alone whose clients are gone
    MayGiveUp     \* whether a worker may stop in the middle of a job and keep its claim

VARIABLES
    \* the store
    head,         \* [state, epoch, limit, base, tail]: `limit` is the log's shape, None before the first append
    segments,     \* base -> sequence of entries | None | Tombstone
    runs,         \* base -> run | None
    task,         \* the compaction task: [owner, epoch, cursor]
    log,          \* ghost: every entry ever committed, by slot
    \* the nodes; a restart loses all of it but the fresh incarnation
    incarnation, seq,
    known,        \* the head as last read, or None when the node must read it again
    view,
    batch,        \* the batch in flight [id, payload, epoch, content], or None
    worker,       \* the node's compaction job [phase, epoch, base]
    \* the network
    inflight,     \* cas requests whose answer the sender no longer awaits: [from, to, entries]: the
                  \* head before and after, and what that adds to the log
    handovers,    \* [to, length, batch]: may be delivered late, repeatedly, or never
    answers,      \* [to, id, head, start, entries]: the reply to a hand-over
    \* answers to clients
    acked,        \* [id, payload, first]
    rejected      \* ids that got a definite error

store == <<head, segments, runs, task, log>>
memory == <<incarnation, seq, known, view, batch, worker>>
network == <<inflight, handovers, answers>>
told == <<acked, rejected>>
vars == <<head, segments, runs, task, log, incarnation, seq, known, view, batch, worker,
          inflight, handovers, answers, acked, rejected>>

Idle == [phase |-> "idle", epoch |-> 0, base |-> 0]
Bases == 0..MaxSlots

\* A message is lost when another needs its room: one that lingers unused is as good as lost.
Kept(S, limit) == IF Cardinality(S) < limit THEN {S}
                  ELSE {kept \in SUBSET S : Cardinality(kept) = limit - 1}

RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})

Init ==
    /\ head = [state |-> "open", epoch |-> 0, limit |-> None, base |-> 0, tail |-> <<>>]
    /\ segments = [b \in Bases |-> None]
    /\ runs = [b \in Bases |-> None]
    /\ task = [owner |-> None, epoch |-> 0, cursor |-> 0]
    /\ log = <<>>
    /\ incarnation = [n \in Nodes |-> 0]
    /\ seq = [n \in Nodes |-> 0]
    /\ known = [n \in Nodes |-> None]
    /\ view = [n \in Nodes |-> EmptyView]
    /\ batch = [n \in Nodes |-> None]
    /\ worker = [n \in Nodes |-> Idle]
    /\ inflight = {} /\ handovers = {} /\ answers = {}
    /\ acked = {} /\ rejected = {}

-----------------------------------------------------------------------------
(* Decisions, each with a name so that a broken variant can replace it.    *)

WriterOf(n) == <<n, incarnation[n]>>        \* a restarted node is a new writer
SameHead(a, b) == a = b                     \* what the store compares: the whole value
NextEpoch(epoch) == epoch + 1
LimitOf(n) == TailLimit                     \* what node n would choose: in its place, SmallAndLarge
ShapeOf(n, h) == IF h.limit = None THEN LimitOf(n) ELSE h.limit  \* whoever appends first writes it there
IsFull(n, h) == Len(h.tail) >= ShapeOf(n, h)  \* from then on a function of the head: all nodes agree
IsSealed(h) == segments[h.base] # None      \* its own idempotent write was acknowledged, or found it there
Freed(n, h) == Len(segments[h.base])        \* contents decide: it wrote this segment, or it read it
SegmentWrite(old, tail) == IF old = None THEN tail ELSE old  \* create, never overwrite
ObservedOpen(h) == h.state = "open"
InEpoch(b, epoch) == b.epoch = epoch        \* a batch is committed in its own epoch or never
Follows(v, start) == start <= v.length      \* entries from slot `start` leave no hole in v
IsCommitted(n, id) == InLog(view[n], id)    \* a committer checks this before it adds a batch
HasOutcome(v, id) == InLog(v, id)           \* a node checks this before it answers its client
EndIsExpected(v, b) == \A k \in Conditioned : b.content.expected[k] \in {-1, FirstOffset(v, k)}
TokenIsHighest(v, b) ==
    \A k \in Conditioned : LET token == b.content.commits[TokenOf(k)]
                          IN token = 0 \/ token >= v.committed[TokenOf(k)]
KeysAreOpen(v, b) ==
    \A k \in Conditioned : b.content.count[k] > 0 => v.committed[TokenOf(k)] # Closed
IsKeptOut(v, b) ==                          \* by a condition, and for good: ends and tokens only rise
    \E k \in Conditioned :
        \/ b.content.expected[k] \in 0..(FirstOffset(v, k) - 1)
        \/ b.content.commits[TokenOf(k)] \in 1..(v.committed[TokenOf(k)] - 1)
        \/ b.content.count[k] > 0 /\ v.committed[TokenOf(k)] = Closed
ReadyToDelete == "written"
DeletedUpTo(b) == b + runs[b].length
CasClaim(w) == task.epoch = w.epoch         \* the cursor moves by cas from one's own claim
CursorAfter(w) == task.cursor + runs[task.cursor].length
ClaimEpoch == task.epoch + 1

-----------------------------------------------------------------------------
(* Appending.                                                              *)

\* The epoch is that of some head the node has read, not always the newest.
SendIn(n, c, epoch) ==
    /\ batch[n] = None
    /\ epoch <= head.epoch
    /\ seq[n] < MaxSeq
    /\ seq' = [seq EXCEPT ![n] = @ + 1]
    /\ batch' = [batch EXCEPT ![n] =
          [id |-> [node |-> WriterOf(n)[1], incarnation |-> WriterOf(n)[2], seq |-> seq[n] + 1],
           payload |-> <<n, incarnation[n], seq[n] + 1>>,
           epoch |-> epoch,
           content |-> c]]
    /\ UNCHANGED <<store, network, told, incarnation, known, view, worker>>

\* What node n may put into its next cas: its own batch and those handed over to it.
Waiting(n) ==
    {b \in {own \in {batch[n]} : own # None} \union {h.batch : h \in {m \in handovers : m.to = n}} :
        ~IsCommitted(n, b.id)}

\* Nonempty sequences over S without repetition: a group commit in any order.
Groups(S) == UNION {{g \in [1..size -> S] : \A i, j \in 1..size : i # j => g[i] # g[j]} :
                       size \in 1..Cardinality(S)}

EntryOf(v, epoch, b) ==
    [id |-> b.id, payload |-> b.payload, epoch |-> epoch,
     first |-> [k \in Keys |-> FirstOffset(v, k)],
     count |-> b.content.count, commits |-> b.content.commits, expected |-> b.content.expected]

\* Each batch of a group keeps its condition, behind those before it.
RECURSIVE AreAdmitted(_, _, _)
AreAdmitted(v, epoch, group) ==
    IF group = <<>> THEN TRUE
    ELSE LET b == Head(group) IN
         /\ EndIsExpected(v, b) /\ TokenIsHighest(v, b) /\ KeysAreOpen(v, b)
         /\ AreAdmitted(Apply(v, EntryOf(v, epoch, b)), epoch, Tail(group))

IsGroup(n, group) ==
    /\ group # <<>>
    /\ \A i \in 1..Len(group) : group[i] \in Waiting(n) /\ InEpoch(group[i], known[n].epoch)
    /\ \A i, j \in 1..Len(group) : i # j => group[i] # group[j]
    \* A writer's batches enter in their order: one that was abandoned may wait beside the next.
    /\ \A i, j \in 1..Len(group) :
          i < j /\ Writer(group[i].id) = Writer(group[j].id) => group[i].id.seq < group[j].id.seq
    /\ Conditioned # {} => AreAdmitted(view[n], known[n].epoch, group)

\* The entries of a group, each with the offsets after everything before it.
RECURSIVE Entries(_, _, _)
Entries(v, epoch, group) ==
    IF group = <<>> THEN <<>>
    ELSE LET e == EntryOf(v, epoch, Head(group))
         IN <<e>> \o Entries(Apply(v, e), epoch, Tail(group))

\* The head after a cas of n from h: entries join the tail. Of a full one the head lets go of what the
\* segment holds; should that be less, the rest stays.
HeadAfter(n, h, entries) ==
    LET freed == IF IsFull(n, h) THEN Freed(n, h) ELSE 0
    IN [h EXCEPT !.limit = ShapeOf(n, h), !.base = @ + freed,
                 !.tail = SubSeq(@, freed + 1, Len(@)) \o entries]

HasRoom(n, h) == IsFull(n, h) => IsSealed(h)

MayCas(n, group) ==
    /\ known[n] # None
    /\ ObservedOpen(known[n])
    /\ IsGroup(n, group)
    /\ HasRoom(n, known[n])

\* What the store writes when it accepts: the broken variants compare less than the whole head.
Accepted(request) ==
    [request.to EXCEPT !.state = head.state, !.epoch = head.epoch]

Answer(n, b, newHead, newLog) ==
    LET asked == CHOOSE h \in handovers : h.to = n /\ h.batch = b
    IN [to |-> b.id.node, id |-> b.id, head |-> newHead, start |-> asked.length,
        entries |-> SubSeq(newLog, asked.length + 1, Len(newLog))]

Handed(n, group) == {group[i] : i \in {j \in 1..Len(group) : group[j].payload[1] # n}}

Request(n, group) ==
    LET entries == Entries(view[n], known[n].epoch, group) IN
    [from |-> known[n], to |-> HeadAfter(n, known[n], entries), entries |-> entries]

\* cas ok, and the answer arrives.
CommitGroup(n, group) ==
    /\ MayCas(n, group)
    /\ SameHead(known[n], head)
    /\ LET request == Request(n, group) IN
       /\ head' = Accepted(request)
       /\ log' = log \o request.entries
       /\ view' = [view EXCEPT ![n] = ApplyAll(@, request.entries)]
       /\ known' = [known EXCEPT ![n] = head']
       /\ answers' = answers \union {Answer(n, b, head', log') : b \in Handed(n, group)}
    /\ UNCHANGED <<segments, runs, task, incarnation, seq, batch, worker, inflight, handovers,
                   told>>

\* cas refused (code 22): another cas moved the head. Read it again.
Conflict(n) ==
    /\ known[n] # None
    /\ ObservedOpen(known[n])
    /\ Waiting(n) # {}
    /\ ~SameHead(known[n], head)
    /\ known' = [known EXCEPT ![n] = None]
    /\ UNCHANGED <<store, network, told, incarnation, seq, view, batch, worker>>

\* No answer in time: the cas may have happened, may still happen, or never will.
UnknownGroup(n, group) ==
    /\ MayCas(n, group)
    /\ IF SameHead(known[n], head)
       THEN \E kept \in Kept(inflight, MaxInFlight) :
               inflight' = kept \union {Request(n, group)}
       ELSE inflight' = inflight
    /\ known' = [known EXCEPT ![n] = None]
    /\ UNCHANGED <<store, handovers, answers, told, incarnation, seq, view, batch, worker>>

LateCommitOf(request) ==
    /\ SameHead(request.from, head)
    /\ head' = Accepted(request)
    /\ log' = log \o request.entries
    /\ inflight' = inflight \ {request}
    /\ UNCHANGED <<segments, runs, task, memory, handovers, answers, told>>

\* Write the full tail as a segment. Any node that needs room does it; a segment that is there stays.
Seal(n) ==
    /\ known[n] # None
    /\ IsFull(n, known[n])
    /\ LET b == known[n].base IN
       segments' = [segments EXCEPT ![b] = SegmentWrite(@, known[n].tail)]
    /\ UNCHANGED <<head, runs, task, log, memory, network, told>>

-----------------------------------------------------------------------------
(* Reading.                                                                *)

\* The first slot of the run that replaced the segment at b; the end of segment or run.
RunAt(b) == CHOOSE r \in Bases : r <= b /\ runs[r] # None /\ b < r + runs[r].length
IsInRun(b) == \E r \in Bases : r <= b /\ runs[r] # None /\ b < r + runs[r].length
EndOfSealed(b) ==
    IF segments[b] = None THEN b + TailLimit
    ELSE IF segments[b] # Tombstone THEN b + Len(segments[b])
    ELSE IF IsInRun(b) THEN RunAt(b) + runs[RunAt(b)].length ELSE b + TailLimit

\* The entries of the segment at b that the view lacks, from it or from the run that replaced it.
FromSegment(v, b) ==
    IF segments[b] = None \/ (segments[b] = Tombstone /\ ~IsInRun(b)) THEN v
    ELSE IF segments[b] = Tombstone THEN Merge(v, runs[RunAt(b)], EndOfSealed(b))
    ELSE ApplyAll(v, SubSeq(segments[b], v.length - b + 1, Len(segments[b])))

RECURSIVE FromSegments(_, _)
FromSegments(v, b) ==
    IF b >= head.base THEN v
    ELSE FromSegments(IF EndOfSealed(b) > v.length THEN FromSegment(v, b) ELSE v, EndOfSealed(b))

FromTail(v) == ApplyAll(v, SubSeq(head.tail, Max(0, v.length - head.base) + 1, Len(head.tail)))

\* One read of the head, then of the segments behind it. Reading them in one step loses nothing:
\* they never change, and a tombstone is only ever found after its run was written.
\* A view that reaches the tail lacks nothing before it.
CatchUp(v) == FromTail(IF v.length >= head.base THEN v ELSE FromSegments(v, 0))

Refresh(n) ==
    /\ known' = [known EXCEPT ![n] = head]
    /\ view' = [view EXCEPT ![n] = CatchUp(@)]
    /\ UNCHANGED <<store, network, told, incarnation, seq, batch, worker>>

-----------------------------------------------------------------------------
(* Handing over, and answering clients.                                    *)

HandOver(n, m) ==
    /\ m # n
    /\ MaxHandOvers > 0
    /\ batch[n] # None
    /\ ~InLog(view[n], batch[n].id)
    /\ LET message == [to |-> m, length |-> view[n].length,
                       batch |-> batch[n]] IN
       /\ \A h \in handovers : <<h.to, h.batch>> # <<m, message.batch>>
       /\ \E kept \in Kept(handovers, MaxHandOvers) : handovers' = kept \union {message}
    /\ UNCHANGED <<store, memory, inflight, answers, told>>

\* The helper's reply brings the entries that the asker lacks: its view grows without a read.
AnsweredWith(n, a) ==
    /\ a.to = n
    /\ answers' = answers \ {a}
    /\ LET behind == view[n].length - a.start IN
       IF Follows(view[n], a.start) /\ behind < Len(a.entries)
       THEN /\ view' = [view EXCEPT ![n] =
                          ApplyAll(@, SubSeq(a.entries, Max(0, behind) + 1, Len(a.entries)))]
            /\ known' = [known EXCEPT ![n] = a.head]
       ELSE UNCHANGED <<view, known>>
    /\ UNCHANGED <<store, inflight, handovers, told, incarnation, seq, batch, worker>>

FirstOf(v, id) ==
    [k \in Keys |->
        LET own == SelectSeq(v.blocks[k], LAMBDA b : b.id = id)
        IN IF own = <<>> THEN FirstOffset(v, k) ELSE own[1].first]

\* The first offset of each key the batch wrote (-1: it wrote none of that key).
AckOf(v, b) ==
    [id |-> b.id, payload |-> b.payload,
     first |-> [k \in Keys |-> IF b.content.count[k] = 0 THEN -1 ELSE FirstOf(v, b.id)[k]]]

Acked(n) ==
    /\ batch[n] # None
    /\ HasOutcome(view[n], batch[n].id)
    /\ acked' = acked \union {AckOf(view[n], batch[n])}
    /\ batch' = [batch EXCEPT ![n] = None]
    /\ answers' = {a \in answers : a.to # n}  \* the node no longer waits for them
    /\ UNCHANGED <<store, inflight, handovers, rejected, incarnation, seq, known, view, worker>>

\* A batch that is not in the log when its epoch is over never will be, in any copy: its
\* client gets a definite error (11) while fenced, or its messages go into a batch of their own.
\* Nothing is appended in a fenced epoch, so a batch that was made in one is over from the beginning.
IsOver(b, h) == h.epoch > b.epoch \/ (h.epoch = b.epoch /\ h.state = "fenced")

\* So does a batch that is not in the log where a condition keeps it out.
Reject(n) ==
    /\ batch[n] # None
    /\ \/ known[n] # None /\ IsOver(batch[n], known[n])
       \/ IsKeptOut(view[n], batch[n])
    /\ ~InLog(view[n], batch[n].id)
    /\ rejected' = rejected \union {batch[n].id}
    /\ batch' = [batch EXCEPT ![n] = None]
    /\ UNCHANGED <<store, network, acked, incarnation, seq, known, view, worker>>

\* The clients of a batch are gone, or the store has refused it: its node leaves it alone, wherever it is on
\* its way. It may still get into the log, before the next batch of its writer or never: of two, the older is
\* in the log as soon as the newer is (InLog compares numbers), and so it is added by nobody any more.
Abandon(n) ==
    /\ batch[n] # None
    /\ batch' = [batch EXCEPT ![n] = None]
    /\ UNCHANGED <<store, network, told, incarnation, seq, known, view, worker>>

\* All memory is gone. Requests and hand-overs of the former life stay in the network; the
\* fresh incarnation (from a register or the clock, never from the log) keeps their ids apart.
RestartAs(n, i) ==
    /\ i > incarnation[n]
    /\ incarnation' = [incarnation EXCEPT ![n] = i]
    /\ seq' = [seq EXCEPT ![n] = 0]
    /\ known' = [known EXCEPT ![n] = None]
    /\ view' = [view EXCEPT ![n] = EmptyView]
    /\ batch' = [batch EXCEPT ![n] = None]
    /\ worker' = [worker EXCEPT ![n] = Idle]
    /\ UNCHANGED <<store, network, told>>

-----------------------------------------------------------------------------
(* Fencing.                                                                *)

SwitchTo(state) ==
    /\ head' = [head EXCEPT !.state = state, !.epoch = NextEpoch(@)]
    /\ UNCHANGED <<segments, runs, task, log, memory, network, told>>

Fence == head.epoch < MaxEpoch /\ head.state = "open" /\ SwitchTo("fenced")
Unfence == head.state = "fenced" /\ SwitchTo("open")

\* Nothing but the epoch changes, as before a vacuum: what was under way in the old one is over.
RaiseEpoch == head.epoch < MaxEpoch /\ SwitchTo(head.state)

-----------------------------------------------------------------------------
(* Compaction of the segment at the cursor, under a claim.                 *)

\* The entries of `count` segments from b on.
RECURSIVE Concatenated(_, _)
Concatenated(b, count) ==
    IF count = 0 THEN <<>> ELSE segments[b] \o Concatenated(b + Len(segments[b]), count - 1)

\* Are there so many sealed segments from b on (or are they in a run already)?
RECURSIVE AreSealed(_, _)
AreSealed(b, count) ==
    count = 0 \/ /\ b < head.base /\ segments[b] \notin {None, Tombstone}
                 /\ AreSealed(b + Len(segments[b]), count - 1)

MayCompact(b) == runs[b] # None \/ AreSealed(b, RunSegments)

\* Any node may claim at any time: a beat that stands still may belong to a slow worker.
Claim(n) ==
    /\ worker[n].phase = "idle"
    /\ MayCompact(task.cursor)
    /\ task.epoch < MaxClaims
    /\ task' = [task EXCEPT !.owner = n, !.epoch = ClaimEpoch]
    /\ worker' = [worker EXCEPT ![n] =
          [phase |-> "claimed", epoch |-> ClaimEpoch, base |-> task.cursor]]
    /\ UNCHANGED <<head, segments, runs, log, incarnation, seq, known, view, batch, network, told>>

Advance(n, from, to) ==
    /\ worker[n].phase = from
    /\ worker' = [worker EXCEPT ![n].phase = to]

CompactWrite(n) ==
    /\ Advance(n, "claimed", "written")
    /\ LET b == worker[n].base IN
       runs' = IF runs[b] = None
               THEN [runs EXCEPT ![b] = RunOf(Concatenated(b, RunSegments))] ELSE runs
    /\ UNCHANGED <<head, segments, task, log, incarnation, seq, known, view, batch, network, told>>

CompactDelete(n) ==  \* the store has no delete: a tombstone
    /\ Advance(n, ReadyToDelete, "deleted")
    /\ LET b == worker[n].base IN
       segments' = [o \in Bases |->
          IF b <= o /\ o < DeletedUpTo(b) /\ segments[o] # None THEN Tombstone ELSE segments[o]]
    /\ UNCHANGED <<head, runs, task, log, incarnation, seq, known, view, batch, network, told>>

CompactCursor(n) ==
    /\ Advance(n, "deleted", "done")
    /\ CasClaim(worker[n])
    /\ task' = [task EXCEPT !.cursor = CursorAfter(worker[n])]
    /\ UNCHANGED <<head, segments, runs, log, incarnation, seq, known, view, batch, network, told>>

\* The end of a job: done, or fenced off by a newer claim.
Release(n) ==
    /\ worker[n].phase # "idle"
    /\ worker[n].phase = "done" \/ task.epoch # worker[n].epoch
    /\ task' = IF task.epoch = worker[n].epoch THEN [task EXCEPT !.owner = None] ELSE task
    /\ worker' = [worker EXCEPT ![n] = Idle]
    /\ UNCHANGED <<head, segments, runs, log, incarnation, seq, known, view, batch, network, told>>

\* A worker hears nothing from the store and stops. Its claim stands until another one is made.
GiveUp(n) ==
    /\ worker[n].phase # "idle"
    /\ worker' = [worker EXCEPT ![n] = Idle]
    /\ UNCHANGED <<store, network, told, incarnation, seq, known, view, batch>>

-----------------------------------------------------------------------------
\* The actions with everything chosen by TLC (under these names they stand in counterexamples).
Commit(n) == known[n] # None /\ \E group \in Groups(Waiting(n)) : CommitGroup(n, group)
Unknown(n) == MaxInFlight > 0 /\ known[n] # None /\ \E group \in Groups(Waiting(n)) : UnknownGroup(n, group)
LateCommit == \E request \in inflight : LateCommitOf(request)
Answered(n) == \E a \in answers : AnsweredWith(n, a)
Restart(n) == Sum(incarnation, Nodes) < MaxIncarnation /\ RestartAs(n, incarnation[n] + 1)
Compact(n) == CompactWrite(n) \/ CompactDelete(n) \/ CompactCursor(n) \/ Release(n)

Send(n, c) == \E epoch \in 0..head.epoch : SendIn(n, c, epoch)

Next ==
    \/ \E n \in Nodes, c \in Contents : Send(n, c)
    \/ \E n \in Nodes : Commit(n) \/ Conflict(n) \/ Unknown(n) \/ Seal(n) \/ Refresh(n)
    \/ \E n, m \in Nodes : HandOver(n, m)
    \/ \E n \in Nodes : Answered(n) \/ Acked(n) \/ Reject(n) \/ Restart(n)
    \/ MayAbandon /\ \E n \in Nodes : Abandon(n)
    \/ \E n \in Nodes : Claim(n) \/ Compact(n)
    \/ MayGiveUp /\ \E n \in Nodes : GiveUp(n)
    \/ LateCommit \/ Fence \/ Unfence

Spec == Init /\ [][Next]_vars

\* The same beside vacuums. To batches under way a fence does the same, so one configuration suffices.
RaisesSpec == Init /\ [][Next \/ RaiseEpoch]_vars

\* The store answers again and again, nodes keep going, some node lifts the fence. Commit needs the
\* strong form: other nodes' appends and lost answers disable it, but not for ever.
Fairness ==
    /\ \A n \in Nodes :
          /\ WF_vars(Refresh(n)) /\ WF_vars(Seal(n)) /\ WF_vars(Acked(n)) /\ WF_vars(Reject(n))
          /\ SF_vars(Commit(n))
          /\ WF_vars(Compact(n))
    /\ WF_vars(Unfence)

FairSpec == Spec /\ Fairness
=============================================================================
