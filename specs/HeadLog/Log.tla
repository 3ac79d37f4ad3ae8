-------------------------------- MODULE Log --------------------------------
(***************************************************************************)
(* The plain append-only log that HeadLog promises to be: one sequence of  *)
(* entries, answers that never lie, and a switch that stops appends.       *)
(* Nothing here knows of heads, segments, retries or hand-overs.           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANT Keys

VARIABLES
    log,       \* sequence of entries [id, payload, epoch, first, count, commits]
    acked,     \* answers given: [id, payload, first]
    rejected,  \* ids answered with a definite error
    fenced     \* no append while TRUE

logVars == <<log, acked, rejected, fenced>>

RECURSIVE Total(_, _)
Total(entries, k) ==
    IF entries = <<>> THEN 0 ELSE Head(entries).count[k] + Total(Tail(entries), k)

\* Slot i takes exactly the offsets after those of all earlier slots, under an id of its own.
SlotFits(entries, i) ==
    /\ \A k \in Keys : entries[i].first[k] = Total(SubSeq(entries, 1, i - 1), k)
    /\ \A j \in 1..(i - 1) : entries[j].id # entries[i].id

\* The answer to a client: the first offset of each key written (-1: none).
FirstsOf(e) == [k \in Keys |-> IF e.count[k] = 0 THEN -1 ELSE e.first[k]]

\* The answer names one entry of the log, the only one that carries this payload.
Answers(entries, a) ==
    \E i \in 1..Len(entries) :
        /\ entries[i].id = a.id
        /\ FirstsOf(entries[i]) = a.first
        /\ {j \in 1..Len(entries) : entries[j].payload = a.payload} = {i}

LogInit == log = <<>> /\ acked = {} /\ rejected = {} /\ fenced = FALSE

AppendEntries ==  \* one or more entries at once
    /\ ~fenced
    /\ Len(log') > Len(log)
    /\ SubSeq(log', 1, Len(log)) = log
    /\ \A i \in (Len(log) + 1)..Len(log') :
          SlotFits(log', i) /\ log'[i].id \notin rejected
    /\ UNCHANGED <<acked, rejected, fenced>>

Acknowledge ==
    /\ acked' # acked
    /\ \E a \in acked' : acked' = acked \union {a} /\ Answers(log, a)
    /\ UNCHANGED <<log, rejected, fenced>>

Refuse ==
    /\ rejected' # rejected
    /\ \E id \in rejected' :
          /\ rejected' = rejected \union {id}
          /\ \A i \in 1..Len(log) : log[i].id # id
    /\ UNCHANGED <<log, acked, fenced>>

Switch ==
    /\ fenced' = ~fenced
    /\ UNCHANGED <<log, acked, rejected>>

LogNext == AppendEntries \/ Acknowledge \/ Refuse \/ Switch
LogSpec == LogInit /\ [][LogNext]_logVars
=============================================================================
