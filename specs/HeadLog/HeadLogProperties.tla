------------------------- MODULE HeadLogProperties -------------------------
(***************************************************************************)
(* What HeadLog promises. The names are those of the assertions in the     *)
(* node and of the list in the design notes (the numbers).                 *)
(***************************************************************************)
EXTENDS HeadLog

AsLog == INSTANCE Log WITH fenced <- head.state = "fenced"

TypeOK ==
    /\ head.state \in {"open", "fenced"}
    /\ head.epoch \in 0..MaxEpoch + 1
    /\ Len(head.tail) < TailLimit + Cardinality(Nodes)  \* not full before the last group
    /\ head.base + Len(head.tail) = Len(log)
    /\ \A n \in Nodes : view[n].length <= Len(log)

\* 1. The offsets of a key are dense, unique and monotonic over slots; so are ids.
OffsetsDense == \A i \in 1..Len(log) : AsLog!SlotFits(log, i)

\* 2. An acknowledged send is in exactly one entry, at the offset acknowledged; a send
\*    that was refused with a definite error is in none.
AckedExactlyOnce == \A a \in acked : AsLog!Answers(log, a)
RejectedNeverAppended == \A i \in 1..Len(log) : log[i].id \notin rejected

\* 3. A node's view is always a prefix of the log.
ViewIsPrefix == \A n \in Nodes : view[n] = Fold(SubSeq(log, 1, view[n].length))

\* 4. A poll answers a contiguous run of its view, from the first offset asked to the last seen.
PollContiguous ==
    \A v \in {view[n] : n \in Nodes}, k \in Keys :
        LET end == FirstOffset(v, k) IN
        \A from \in 0..end : PollAnswer(v, k, from) = [i \in 1..(end - from) |-> from + i - 1]

\* 5. Nothing is appended while fenced, or by an old epoch after a new one.
NoAppendWhileFenced ==
    [][log' # log => /\ head.state = "open"
                     /\ \A i \in (Len(log) + 1)..Len(log') : log'[i].epoch = head.epoch]_vars

\* 6. Segments and runs never change (a segment ends as a tombstone, and stays one) ...
SegmentsImmutable ==
    [][\A b \in Bases :
          /\ segments[b] # segments'[b] =>
                segments[b] = None \/ (segments'[b] = Tombstone /\ IsInRun(b))
          /\ runs[b] # runs'[b] => runs[b] = None]_<<segments, runs>>

\*    ... and at every moment a fresh reader finds every committed offset.
CommittedReadable == CatchUp(EmptyView) = Fold(log)

\* 7. The cursor never passes the end of the compacted segments.
CursorNeverPassesCompacted ==
    \A b \in Bases : b < task.cursor =>
        /\ segments[b] \in {None, Tombstone}
        /\ IsInRun(b)
        /\ LET r == RunAt(b) IN runs[r] = RunOf(SubSeq(log, r + 1, r + runs[r].length))

CursorNeverMovesBack == [][task'.cursor >= task.cursor]_vars

\* 8. At most one live claim holds the task's current epoch.
OneLiveClaim ==
    Cardinality({n \in Nodes : worker[n].phase # "idle" /\ worker[n].epoch = task.epoch}) <= 1

\* 9. A batch that expects an end is where its key ends; a token never falls; behind a close
\*    the key has no messages.
ConditionKept ==
    \A i \in 1..Len(log), k \in Conditioned :
        log[i].expected[k] \in {-1, AsLog!Total(SubSeq(log, 1, i - 1), k)}

TokenNeverFalls ==
    \A j \in 1..Len(log) : \A i \in 1..(j - 1), k \in Conditioned :
        log[j].commits[TokenOf(k)] = 0 \/ log[j].commits[TokenOf(k)] >= log[i].commits[TokenOf(k)]

ClosedForEver ==
    \A j \in 1..Len(log) : \A i \in 1..(j - 1), k \in Conditioned :
        log[i].commits[TokenOf(k)] = Closed => log[j].count[k] = 0

\* Law 2: the head never takes a value it had before (checked as: it only grows).
HeadNeverReturns ==
    [][head' # head => \/ head'.epoch > head.epoch
                       \/ /\ head'.epoch = head.epoch
                          /\ head'.base + Len(head'.tail) > head.base + Len(head.tail)]_vars

\* HeadLog is a plain log.
RefinesLog == AsLog!LogSpec

\* Every batch is committed and answered, or refused, or its node restarted.
Progress == \A n \in Nodes : (batch[n] # None) ~> (batch[n] = None)
ViewsConverge == \A n \in Nodes : <>[](view[n] = Fold(log))
ClaimsEnd == \A n \in Nodes : (worker[n].phase # "idle") ~> (worker[n].phase = "idle")

\* Contents for the configurations: what one batch may append and commit, and on which conditions.
NoCommits == [k \in Names |-> 0]
Anywhere == [k \in Conditioned |-> -1]
OneEach == {[count |-> [k \in Keys |-> 1], commits |-> NoCommits, expected |-> Anywhere]}
Mixed == {[count |-> c, commits |-> c, expected |-> Anywhere] :
             c \in [Keys -> {0, 2}] \ {[k \in Keys |-> 0]}}
\* At the beginning; behind one message, with the first token; with the next one; the end of the key.
Conditional == {[count |-> [k \in Keys |-> c[1]],
                 commits |-> [name \in Names |-> IF name \in Keys THEN 0 ELSE c[2]],
                 expected |-> [k \in Conditioned |-> c[3]]] :
                   c \in {<<1, 0, 0>>, <<1, 1, 1>>, <<1, 2, -1>>, <<0, Closed, -1>>}}

\* Limits for the configurations in which each node has its own: for LimitOf.
OneNode == CHOOSE n \in Nodes : TRUE
SmallAndLarge(n) == IF n = OneNode THEN 1 ELSE TailLimit

\* A log without a shape, where no append writes one: for ShapeOf, and then for IsFull.
NoShape(n, h) == h.limit
FullForItself(n, h) == Len(h.tail) >= LimitOf(n)

NodeSymmetry == {p \in [Nodes -> Nodes] : \A a, b \in Nodes : a # b => p[a] # p[b]}
=============================================================================
