--------------------------- MODULE UncleanElection ---------------------------
(***************************************************************************)
(* One partition of a Kafka-style log with replicas, an in-sync set, a     *)
(* controller, and an election of last resort: when every member of the    *)
(* in-sync set is down, a replica outside of it may become leader.         *)
(*                                                                         *)
(* The question is which replica. A committed message is on at least       *)
(* MinInSync replicas, so among enough candidates at least one has it.     *)
(* "The replica with the latest offset" chooses wrongly. So does "the      *)
(* replica whose last entry has the latest epoch". Two rules choose        *)
(* rightly: the latest epoch that a replica covers, which means that it    *)
(* has all that the leader had when that epoch began, if a leader commits  *)
(* that much at once; or the epoch of the last entry, if a leader commits  *)
(* entries of its own epoch first, as Raft does.                           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Replicas, MinInSync, Candidates, MaxEpoch, MaxMessages, MaxCrashes, None

VARIABLES
    log,         \* replica -> sequence of [epoch, msg]; on disk
    covers,      \* replica -> the latest epoch whose beginning its log has; on disk
    follows,     \* replica -> the latest epoch in which it dropped what its leader does not have
    begins,      \* the length of the leader's log when its epoch began
    known,       \* replica -> [epoch, leader]: the metadata that it has applied
    up,          \* the replicas that run
    leader, epoch, isr,  \* the controller's metadata
    committed,   \* ghost: what leaders have committed, by offset
    sent,        \* how many messages were produced
    crashes      \* how many crashes there were

metadata == <<leader, epoch, isr>>
disks == <<log, covers, follows, begins>>
vars == <<disks, known, up, metadata, committed, sent, crashes>>

Unaware == [epoch |-> 0, leader |-> None]
LeadsNow(r) == r \in up /\ known[r] = [epoch |-> epoch, leader |-> r] /\ leader = r
LastEpoch(r) == IF log[r] = <<>> THEN 0 ELSE log[r][Len(log[r])].epoch
IsPrefix(short, long) == Len(short) <= Len(long) /\ SubSeq(long, 1, Len(short)) = short
Max(numbers) == CHOOSE n \in numbers : \A m \in numbers : m <= n
CommonPrefix(one, other) ==
    Max({n \in 0..Len(one) : n <= Len(other) /\ SubSeq(one, 1, n) = SubSeq(other, 1, n)})

Init ==
    /\ leader \in Replicas
    /\ epoch = 1
    /\ isr = Replicas
    /\ log = [r \in Replicas |-> <<>>]
    /\ covers = [r \in Replicas |-> 1]
    /\ follows = [r \in Replicas |-> 1]
    /\ begins = 0
    /\ known = [r \in Replicas |-> [epoch |-> 1, leader |-> leader]]
    /\ up = Replicas
    /\ committed = <<>>
    /\ sent = 0
    /\ crashes = 0

-----------------------------------------------------------------------------
\* Decisions; a broken configuration replaces one of them.

\* Whether candidate r may win against candidate s.
AtLeast(r, s) ==
    \/ covers[r] > covers[s]
    \/ covers[r] = covers[s] /\ Len(log[r]) >= Len(log[s])
MayCommit(r, n) == n >= begins                  \* then whoever has the entry covers the epoch
CaughtUp(f, l) == follows[f] = epoch /\ Len(log[f]) = Len(log[l])
CoversWhen(length) == length >= begins          \* having fetched what the leader began with
EpochsLeft == epoch < MaxEpoch                  \* bounds the model
EnoughCandidates == Cardinality(up) >= Candidates

-----------------------------------------------------------------------------
\* Replicas.

\* A replica that believes that it leads appends, although it may be out of date.
Produce(r) ==
    /\ r \in up
    /\ known[r].leader = r
    /\ sent < MaxMessages
    /\ sent' = sent + 1
    /\ log' = [log EXCEPT ![r] = Append(@, [epoch |-> known[r].epoch, msg |-> sent'])]
    /\ UNCHANGED <<covers, follows, begins, known, up, metadata, committed, crashes>>

\* Only the newest metadata arrives: what was moved there and back has not moved.
LearnMetadata(r) ==
    /\ r \in up
    /\ known[r].epoch < epoch
    /\ known' = [known EXCEPT ![r] = [epoch |-> epoch, leader |-> leader]]
    /\ IF leader = r
       THEN /\ covers' = [covers EXCEPT ![r] = epoch]
            /\ follows' = [follows EXCEPT ![r] = epoch]
            /\ begins' = Len(log[r])
       ELSE UNCHANGED <<covers, follows, begins>>
    /\ UNCHANGED <<log, up, metadata, committed, sent, crashes>>

Covered(f, length) == IF CoversWhen(length) THEN [covers EXCEPT ![f] = epoch] ELSE covers

\* A follower first drops what its leader does not have, then fetches entry by entry.
Truncate(f) ==
    /\ f \in up
    /\ leader # f /\ LeadsNow(leader)
    /\ known[f].epoch = epoch
    /\ follows[f] < epoch
    /\ log' = [log EXCEPT ![f] = SubSeq(@, 1, CommonPrefix(@, log[leader]))]
    /\ follows' = [follows EXCEPT ![f] = epoch]
    /\ covers' = Covered(f, Len(log'[f]))
    /\ UNCHANGED <<begins, known, up, metadata, committed, sent, crashes>>

Fetch(f) ==
    /\ f \in up
    /\ leader # f /\ LeadsNow(leader)
    /\ known[f].epoch = epoch
    /\ follows[f] = epoch
    /\ Len(log[f]) < Len(log[leader])
    /\ log' = [log EXCEPT ![f] = Append(@, log[leader][Len(@) + 1])]
    /\ covers' = Covered(f, Len(log'[f]))
    /\ UNCHANGED <<follows, begins, known, up, metadata, committed, sent, crashes>>

\* The high watermark moves, and produce requests with acks=all are answered.
Commit(r) ==
    /\ LeadsNow(r)
    /\ Cardinality(isr) >= MinInSync
    /\ \E n \in (Len(committed) + 1)..Len(log[r]) :
        /\ \A f \in isr : f = r \/ (follows[f] = epoch /\ Len(log[f]) >= n)
        /\ MayCommit(r, n)
        /\ committed' = SubSeq(log[r], 1, n)
    /\ UNCHANGED <<disks, known, up, metadata, sent, crashes>>

-----------------------------------------------------------------------------
\* The in-sync set, the balancer, crashes and elections.

Shrink(r, f) ==
    /\ LeadsNow(r)
    /\ f \in isr \ {r}
    /\ isr' = isr \ {f}
    /\ UNCHANGED <<disks, known, up, leader, epoch, committed, sent, crashes>>

Expand(r, f) ==
    /\ LeadsNow(r)
    /\ f \in up \ isr
    /\ CaughtUp(f, r)
    /\ isr' = isr \union {f}
    /\ UNCHANGED <<disks, known, up, leader, epoch, committed, sent, crashes>>

Elect(r, members) ==
    /\ EpochsLeft
    /\ leader' = r
    /\ epoch' = epoch + 1
    /\ isr' = members
    /\ UNCHANGED <<disks, known, up, committed, sent, crashes>>

MoveLeader(r) == leader \in up /\ r \in (isr \intersect up) \ {leader} /\ Elect(r, isr)

ElectClean(r) == leader \notin up /\ r \in isr \intersect up /\ Elect(r, isr \ {leader})

ElectUnclean(r) ==
    /\ isr \intersect up = {}
    /\ EnoughCandidates
    /\ r \in up
    /\ \A s \in up : AtLeast(r, s)
    /\ Elect(r, {r})

Crash(r) ==
    /\ r \in up
    /\ crashes < MaxCrashes
    /\ crashes' = crashes + 1
    /\ up' = up \ {r}
    /\ known' = [known EXCEPT ![r] = Unaware]
    /\ UNCHANGED <<disks, metadata, committed, sent>>

Restart(r) ==
    /\ r \notin up
    /\ up' = up \union {r}
    /\ UNCHANGED <<disks, known, metadata, committed, sent, crashes>>

Next ==
    \E r \in Replicas :
        \/ Produce(r) \/ LearnMetadata(r) \/ Truncate(r) \/ Fetch(r) \/ Commit(r)
        \/ MoveLeader(r) \/ ElectClean(r) \/ ElectUnclean(r) \/ Crash(r) \/ Restart(r)
        \/ \E f \in Replicas : Shrink(r, f) \/ Expand(r, f)

Spec == Init /\ [][Next]_vars
ReplicaSymmetry == {p \in [Replicas -> Replicas] : \A a, b \in Replicas : a # b => p[a] # p[b]}

-----------------------------------------------------------------------------
TypeOK ==
    /\ leader \in Replicas
    /\ epoch \in 1..MaxEpoch
    /\ isr \subseteq Replicas /\ isr # {}
    /\ up \subseteq Replicas
    /\ \A r \in Replicas : covers[r] <= follows[r] /\ follows[r] <= epoch /\ known[r].epoch <= epoch
    /\ \A r \in Replicas : LastEpoch(r) <= epoch

\* Whoever leads, cleanly elected or not, has every committed message at its offset.
CommittedMessagesNeverLost == IsPrefix(committed, log[leader])

\* Any member of the in-sync set may become leader at any time.
InSyncHasCommitted == \A r \in isr : IsPrefix(committed, log[r])
=============================================================================
