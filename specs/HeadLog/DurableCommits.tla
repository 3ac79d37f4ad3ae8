--------------------------- MODULE DurableCommits ---------------------------
(***************************************************************************)
(* Committed offsets that are durable when they are acknowledged           *)
(* (core/headlog/commits.py). There are a few registers, which the nodes   *)
(* share: RegisterOf(n) is that of node n, its own one or a common one.    *)
(* How many there are stands in the log's shape: it does not follow from   *)
(* the number of nodes that somebody sees. A reader merges all of them by  *)
(* maximum. When a register has too many pairs, they ride in a batch of    *)
(* the log; a pair that is in the log is left out at the next write. The   *)
(* register's slot says how much of the log has all that was left out.     *)
(*                                                                         *)
(* Law: each write replaces a value that was read, raises what it has, and *)
(* leaves out only pairs that are in the log below its slot. All of that   *)
(* stays true, so a compare-and-set of unknown outcome does no harm        *)
(* whenever it arrives, also in a later life of its node, and whichever    *)
(* node of those that share a register makes it.                           *)
(*                                                                         *)
(* Abstracted: an entry of the log is the offsets that it carries; 0 is no *)
(* offset; whoever appends has read the whole log (Law 1 of HeadLog).      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Nodes, Keys, MaxOffset, MaxAsks, MaxEntries, MaxRestarts, MaxLost, MaxLists, None

VARIABLES
    register,   \* [slot, offsets]: what the store has; named by nodes, those that nobody writes stay empty
    log,        \* the entries, each the offsets that it carries
    node,       \* node -> [held, view, waiting]: its register as it knows it (None: it must be read),
                \* how many entries it has folded, what clients wait for
    call,       \* node -> the compare-and-set [node, at, old, new] whose answer it waits for, or None;
                \* `at` is the register
    late,       \* the compare-and-sets that may still take effect
    reader,     \* who lists offsets: [floor, view, left, slot, offsets], or None
    acked,      \* ghost: the highest acknowledged offset of each key
    listed,     \* ghost: [floor, offsets]: what was acknowledged before the newest list, and its answer
    count       \* how often what happens only so often has happened

vars == <<register, log, node, call, late, reader, acked, listed, count>>

Offsets == [Keys -> 0..MaxOffset]
Nothing == [k \in Keys |-> 0]
Max(a, b) == IF a > b THEN a ELSE b
Merged(a, b) == [k \in Keys |-> Max(a[k], b[k])]
AtLeast(a, b) == \A k \in Keys : a[k] >= b[k]

RECURSIVE Logged(_)
Logged(slot) == IF slot = 0 THEN Nothing ELSE Merged(Logged(slot - 1), log[slot])

Empty == [slot |-> 0, offsets |-> Nothing]
Fresh == [held |-> None, view |-> 0, waiting |-> Nothing]

Init ==
    /\ register = [n \in Nodes |-> Empty]
    /\ log = <<>>
    /\ node = [n \in Nodes |-> Fresh]
    /\ call = [n \in Nodes |-> None]
    /\ late = {}
    /\ reader = None
    /\ acked = Nothing
    /\ listed = [floor |-> Nothing, offsets |-> Nothing]
    /\ count = [asks |-> 0, restarts |-> 0, lost |-> 0, lists |-> 0]

Counted(what, most) == count[what] < most /\ count' = [count EXCEPT ![what] = @ + 1]

-----------------------------------------------------------------------------
\* Decisions

RegisterOf(n) == n                            \* each node has its own, or ...
OneForAll(n) == CHOOSE each \in Nodes : TRUE  \* ... in its place: all share one
BaseIsCurrent(cas) == register[cas.at] = cas.old
Lacks(n, k) == node[n].waiting[k] > Max(node[n].held.offsets[k], Logged(node[n].view)[k])
InStore(n) ==  \* for all that n knows
    node[n].held # None /\ AtLeast(Merged(node[n].held.offsets, Logged(node[n].view)), node[n].waiting)
MayLeaveOut(n, k) == node[n].held.offsets[k] <= Logged(node[n].view)[k]
SlotOf(n, slot) == Max(slot, node[n].view)
KnownAfterSilence(cas) == None
KnownAfterRefusal(cas) == None
ReadsOn(slot, view) == slot > view
ToRead(n) == {RegisterOf(each) : each \in Nodes}  \* the same for all: the log says which there are

-----------------------------------------------------------------------------
\* A node

Ask(n, k, offset) ==
    /\ Counted("asks", MaxAsks)
    /\ node' = [node EXCEPT ![n].waiting[k] = Max(@, offset)]
    /\ UNCHANGED <<register, log, call, late, reader, acked, listed>>

Read(n) ==
    /\ node[n].held = None /\ node[n].waiting # Nothing
    /\ node' = [node EXCEPT ![n].held = register[RegisterOf(n)]]
    /\ UNCHANGED <<register, log, call, late, reader, acked, listed, count>>

NewValue(n) ==
    LET held == node[n].held
        out == {k \in Keys : held.offsets[k] > 0 /\ MayLeaveOut(n, k)}
    IN  [slot |-> IF out = {} THEN held.slot ELSE SlotOf(n, held.slot),
         offsets |-> [k \in Keys |->
            IF Lacks(n, k) THEN node[n].waiting[k]
            ELSE IF k \in out THEN 0 ELSE held.offsets[k]]]

Write(n) ==
    /\ node[n].held # None /\ call[n] = None
    /\ \E k \in Keys : Lacks(n, k)
    /\ LET cas == [node |-> n, at |-> RegisterOf(n), old |-> node[n].held, new |-> NewValue(n)]
       IN  call' = [call EXCEPT ![n] = cas] /\ late' = late \union {cas}
    /\ UNCHANGED <<register, log, node, reader, acked, listed, count>>

Written(n) ==
    /\ call[n] \in late /\ BaseIsCurrent(call[n])
    /\ register' = [register EXCEPT ![call[n].at] = call[n].new]
    /\ node' = [node EXCEPT ![n].held = call[n].new]
    /\ call' = [call EXCEPT ![n] = None]
    /\ late' = late \ {call[n]}
    /\ UNCHANGED <<log, reader, acked, listed, count>>

Refused(n) ==
    /\ call[n] \in late /\ ~BaseIsCurrent(call[n])
    /\ node' = [node EXCEPT ![n].held = KnownAfterRefusal(call[n])]
    /\ call' = [call EXCEPT ![n] = None]
    /\ late' = late \ {call[n]}
    /\ UNCHANGED <<register, log, reader, acked, listed, count>>

\* No answer: it may have happened, or may still.
Unanswered(n) ==
    /\ call[n] # None
    /\ Counted("lost", MaxLost)
    /\ node' = [node EXCEPT ![n].held = KnownAfterSilence(call[n])]
    /\ call' = [call EXCEPT ![n] = None]
    /\ UNCHANGED <<register, log, late, reader, acked, listed>>

TakesEffectLate(cas) ==
    /\ BaseIsCurrent(cas)
    /\ register' = [register EXCEPT ![cas.at] = cas.new]
    /\ late' = late \ {cas}
    /\ UNCHANGED <<log, node, call, reader, acked, listed, count>>

Acknowledge(n) ==
    /\ node[n].waiting # Nothing
    /\ InStore(n)
    /\ acked' = Merged(acked, node[n].waiting)
    /\ node' = [node EXCEPT ![n].waiting = Nothing]
    /\ UNCHANGED <<register, log, call, late, reader, listed, count>>

\* Its pairs ride in a batch.
MoveIntoLog(n) ==
    /\ Len(log) < MaxEntries
    /\ node[n].held # None /\ node[n].view = Len(log)
    /\ ~AtLeast(Logged(Len(log)), node[n].held.offsets)
    /\ log' = Append(log, node[n].held.offsets)
    /\ node' = [node EXCEPT ![n].view = Len(log) + 1]
    /\ UNCHANGED <<register, call, late, reader, acked, listed, count>>

Refresh(n) ==
    /\ node[n].view < Len(log)
    /\ node' = [node EXCEPT ![n].view = Len(log)]
    /\ UNCHANGED <<register, log, call, late, reader, acked, listed, count>>

Restart(n) ==
    /\ node[n] # Fresh
    /\ Counted("restarts", MaxRestarts)
    /\ node' = [node EXCEPT ![n] = Fresh]
    /\ call' = [call EXCEPT ![n] = None]
    /\ UNCHANGED <<register, log, late, reader, acked, listed>>

-----------------------------------------------------------------------------
\* A list of committed offsets, through any node: the log, then the registers one by one, then the log again
\* if one of them has left out more.

BeginList(n) ==
    /\ reader = None
    /\ Counted("lists", MaxLists)
    /\ reader' = [floor |-> acked, view |-> Len(log), left |-> ToRead(n), slot |-> 0, offsets |-> Nothing]
    /\ UNCHANGED <<register, log, node, call, late, acked, listed>>

ReadRegister(at) ==
    /\ reader # None /\ at \in reader.left
    /\ reader' = [reader EXCEPT
        !.left = @ \ {at},
        !.slot = Max(@, register[at].slot),
        !.offsets = Merged(@, register[at].offsets)]
    /\ UNCHANGED <<register, log, node, call, late, acked, listed, count>>

AnswerList ==
    /\ reader # None /\ reader.left = {}
    /\ LET view == IF ReadsOn(reader.slot, reader.view) THEN Len(log) ELSE reader.view
       IN  listed' = [floor |-> reader.floor, offsets |-> Merged(Logged(view), reader.offsets)]
    /\ reader' = None
    /\ UNCHANGED <<register, log, node, call, late, acked, count>>

Next ==
    \/ \E n \in Nodes :
        \/ \E k \in Keys, offset \in 1..MaxOffset : Ask(n, k, offset)
        \/ Read(n) \/ Write(n) \/ Written(n) \/ Refused(n) \/ Unanswered(n) \/ Acknowledge(n)
        \/ MoveIntoLog(n) \/ Refresh(n) \/ Restart(n) \/ BeginList(n) \/ ReadRegister(n)
    \/ \E cas \in late : TakesEffectLate(cas)
    \/ AnswerList

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Register == [slot : 0..MaxEntries, offsets : Offsets]
TypeOK ==
    /\ register \in [Nodes -> Register]
    /\ \A n \in Nodes : node[n].held \in Register \union {None} /\ node[n].view \in 0..Len(log)
    /\ \A cas \in late : cas.new \in Register

RECURSIVE InRegisters(_)
InRegisters(nodes) ==
    IF nodes = {} THEN Nothing
    ELSE LET n == CHOOSE each \in nodes : TRUE
         IN  Merged(register[n].offsets, InRegisters(nodes \ {n}))

\* What a reader finds that reads everything now.
Known == Merged(InRegisters(Nodes), Logged(Len(log)))

AckedInStore == AtLeast(Known, acked)
CommitsNeverGoBack == [][AtLeast(Known', Known)]_vars

\* Whoever asks after an acknowledgement is told of it, through whichever node.
CommitsKept == AtLeast(listed.offsets, listed.floor)

\* What a register has left out is in the log below its slot.
LeftOutIsLogged == \A n \in Nodes : register[n].slot <= Len(log)

NodeSymmetry == {p \in [Nodes -> Nodes] : \A a, b \in Nodes : a # b => p[a] # p[b]}
=============================================================================
