----------------------------- MODULE BookKeeper -----------------------------
(***************************************************************************)
(* One ledger of Apache BookKeeper: its owner appends entries to bookies,  *)
(* and a recoverer, which believes that the owner is dead, closes the      *)
(* ledger. The owner may be alive.                                         *)
(*                                                                         *)
(* The question is what must be fenced. The recoverer fences bookies when  *)
(* it asks for their last add confirmed. One bookie may miss that request. *)
(* So the reads that look for the end of the ledger must fence as well.    *)
(*                                                                         *)
(* Every request may be late, may overtake others and may never arrive. An *)
(* answer comes with its request: both writers may wait before each step,  *)
(* so a late answer adds nothing. A request of a step of the recovery that *)
(* is over never arrives: it could only fence one bookie more, or store    *)
(* one copy more. The metadata is a register with compare-and-set.         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Bookies, EnsembleSize, WriteQuorum, AckQuorum,
    MaxEntries,     \* how many entries the owner appends
    MaxChanges,     \* how often an ensemble changes
    Live            \* bookies that answer the recoverer in the end

VARIABLES
    meta,           \* the ledger's metadata: version, status, fragments, last entry
    stored,         \* bookie -> entries that it has
    fenced,         \* bookies that refuse the owner's entries
    lacs,           \* bookie -> the highest last add confirmed that it was told
    network,        \* requests that have not arrived
    changes,        \* how many ensemble changes there were
    \* the owner
    owner,          \* "writing", "stopped" or "closed"
    ensemble,       \* the bookies that it writes to
    sent,           \* how many entries it has sent
    acks,           \* pairs of entry and bookie
    confirmed,      \* entries that the application has seen confirmed, in that order
    \* the recoverer
    phase,          \* "idle", "fencing", "reading", "writing back", "closing" or "closed"
    fragments,      \* the fragments that it will write when it closes
    entry,          \* the entry that it reads or writes back
    answers         \* bookie -> its answer in this phase

bookies == <<stored, fenced, lacs>>
ownerVars == <<owner, ensemble, sent, acks, confirmed>>
recoverer == <<phase, fragments, entry, answers>>
vars == <<meta, bookies, network, changes, ownerVars, recoverer>>

-----------------------------------------------------------------------------
Ensembles == {e \in [1..EnsembleSize -> Bookies] : \A i, j \in DOMAIN e : i # j => e[i] # e[j]}
Range(f) == {f[x] : x \in DOMAIN f}
Max(numbers) == CHOOSE n \in numbers : \A m \in numbers : m <= n

\* Entries go round the ensemble: the bookies that an entry is written to.
WriteSet(members, e) == {members[((e + i) % EnsembleSize) + 1] : i \in 0..(WriteQuorum - 1)}
Last(sequence) == sequence[Len(sequence)]
FragmentOf(frags, e) == frags[Max({1} \union {i \in DOMAIN frags : frags[i].first <= e})]
LastAddConfirmed == IF confirmed = <<>> THEN 0 ELSE Last(confirmed)

\* The fragments after a change of the ensemble from entry e on.
WithEnsemble(frags, e, members) ==
    LET changed == [first |-> e, ensemble |-> members]
    IN IF Last(frags).first = e THEN [frags EXCEPT ![Len(frags)] = changed]
       ELSE Append(frags, changed)
Replaced(members, old, new) == [i \in DOMAIN members |-> IF members[i] = old THEN new ELSE members[i]]

LacSent(e) == LastAddConfirmed
Adds(e, to) == {[kind |-> "add", bookie |-> b, entry |-> e, lac |-> LacSent(e)] : b \in to}
WriteBacks(e, to) == {[kind |-> "write back", bookie |-> b, entry |-> e] : b \in to}
Fences(to) == {[kind |-> "fence", bookie |-> b] : b \in to}
Reads(e, to) == {[kind |-> "read", bookie |-> b, entry |-> e] : b \in to}
FromRecoverer(m) == m.kind \in {"fence", "read", "write back"}
NoAnswers == [b \in {} |-> 0]

Init ==
    /\ ensemble \in Ensembles
    /\ meta = [version |-> 1, status |-> "OPEN", last |-> 0,
                fragments |-> <<[first |-> 1, ensemble |-> ensemble]>>]
    /\ stored = [b \in Bookies |-> {}]
    /\ fenced = {}
    /\ lacs = [b \in Bookies |-> 0]
    /\ network = {}
    /\ changes = 0
    /\ owner = "writing"
    /\ sent = 0
    /\ acks = {}
    /\ confirmed = <<>>
    /\ phase = "idle"
    /\ fragments = <<>>
    /\ entry = 0
    /\ answers = NoAnswers

-----------------------------------------------------------------------------
\* Decisions; a broken configuration replaces one of them.

ReadsFence == TRUE                                         \* the fix of issue 2614
StartsAfter(lac, first) == Max({lac, first - 1})           \* the fix of issue 2615
ReadFragments == meta.fragments                            \* as they were when the recovery began
ConfirmedNext(e) == e = LastAddConfirmed + 1
FencingCovers(answered) ==                                 \* every ack quorum has a fenced bookie
    \A e \in 1..EnsembleSize : Cardinality(WriteSet(Last(fragments).ensemble, e) \ answered) < AckQuorum
CannotBeAcked(missing) == missing > WriteQuorum - AckQuorum   \* the fix of issue 1067
WrittenBack(acked) == acked >= AckQuorum
EnoughAcks(acked) == acked >= AckQuorum

-----------------------------------------------------------------------------
\* The owner.

AddEntry ==
    /\ owner = "writing"
    /\ sent < MaxEntries
    /\ sent' = sent + 1
    /\ network' = network \union Adds(sent', WriteSet(ensemble, sent'))
    /\ UNCHANGED <<meta, bookies, changes, owner, ensemble, acks, confirmed, recoverer>>

Confirm(e) ==
    /\ owner = "writing"
    /\ e \notin Range(confirmed)
    /\ ConfirmedNext(e)
    /\ EnoughAcks(Cardinality({b \in WriteSet(ensemble, e) : <<e, b>> \in acks}))
    /\ confirmed' = Append(confirmed, e)
    /\ UNCHANGED <<meta, bookies, network, changes, owner, ensemble, sent, acks, recoverer>>

\* A bookie does not answer, or its answer was lost: a spare one takes its place, from the first unconfirmed entry on.
ChangeEnsemble(old, new) ==
    /\ owner = "writing"
    /\ meta.status = "OPEN"
    /\ changes < MaxChanges
    /\ old \in Range(ensemble) /\ new \notin Range(ensemble)
    /\ LastAddConfirmed < sent
    /\ ensemble' = Replaced(ensemble, old, new)
    /\ LET first == LastAddConfirmed + 1
       IN /\ meta' = [meta EXCEPT !.version = @ + 1, !.fragments = WithEnsemble(@, first, ensemble')]
          /\ network' = network \union
                UNION {Adds(e, WriteSet(ensemble', e) \intersect {new}) : e \in first..sent}
    /\ changes' = changes + 1
    /\ UNCHANGED <<bookies, owner, sent, acks, confirmed, recoverer>>

Close ==
    /\ owner = "writing"
    /\ meta.status = "OPEN"
    /\ meta' = [meta EXCEPT !.version = @ + 1, !.status = "CLOSED", !.last = LastAddConfirmed]
    /\ owner' = "closed"
    /\ UNCHANGED <<bookies, network, changes, ensemble, sent, acks, confirmed, recoverer>>

-----------------------------------------------------------------------------
\* The bookies.

\* An owner whose entry is refused stops: somebody recovers the ledger.
ReceiveAdd(m) ==
    /\ m.kind = "add"
    /\ network' = network \ {m}
    /\ IF m.bookie \in fenced
       THEN /\ owner' = IF owner = "writing" THEN "stopped" ELSE owner
            /\ UNCHANGED <<stored, lacs, acks>>
       ELSE /\ stored' = [stored EXCEPT ![m.bookie] = @ \union {m.entry}]
            /\ lacs' = [lacs EXCEPT ![m.bookie] = Max({@, m.lac})]
            /\ acks' = IF owner = "writing" THEN acks \union {<<m.entry, m.bookie>>} ELSE acks
            /\ UNCHANGED owner
    /\ UNCHANGED <<meta, fenced, changes, ensemble, sent, confirmed, recoverer>>

TellRecoverer(m, answer) ==
    /\ network' = network \ {m}
    /\ answers' = (m.bookie :> answer) @@ answers
    /\ UNCHANGED <<meta, changes, ownerVars, phase, fragments, entry>>

ReceiveFence(m) ==
    /\ m.kind = "fence"
    /\ fenced' = fenced \union {m.bookie}
    /\ TellRecoverer(m, lacs[m.bookie])
    /\ UNCHANGED <<stored, lacs>>

ReceiveRead(m) ==
    /\ m.kind = "read"
    /\ fenced' = IF ReadsFence THEN fenced \union {m.bookie} ELSE fenced
    /\ TellRecoverer(m, IF m.entry \in stored[m.bookie] THEN "found" ELSE "missing")
    /\ UNCHANGED <<stored, lacs>>

\* A fenced bookie takes what the recoverer writes back.
ReceiveWriteBack(m) ==
    /\ m.kind = "write back"
    /\ stored' = [stored EXCEPT ![m.bookie] = @ \union {m.entry}]
    /\ TellRecoverer(m, "added")
    /\ UNCHANGED <<fenced, lacs>>

-----------------------------------------------------------------------------
\* The recoverer.

Go(next, e, requests) ==
    /\ phase' = next
    /\ entry' = e
    /\ answers' = NoAnswers
    /\ network' = {m \in network : ~FromRecoverer(m)} \union requests

StartRecovery ==
    /\ phase = "idle"
    /\ meta.status = "OPEN"
    /\ meta' = [meta EXCEPT !.version = @ + 1, !.status = "IN_RECOVERY"]
    /\ fragments' = meta.fragments
    /\ Go("fencing", 0, Fences(Range(Last(fragments').ensemble)))
    /\ UNCHANGED <<bookies, changes, ownerVars>>

Read(e) == Go("reading", e, Reads(e, WriteSet(FragmentOf(ReadFragments, e).ensemble, e)))

StartReading ==
    /\ phase = "fencing"
    /\ FencingCovers(DOMAIN answers)
    /\ Read(StartsAfter(Max(Range(answers)), Last(fragments).first) + 1)
    /\ UNCHANGED <<meta, bookies, changes, ownerVars, fragments>>

\* One bookie has the entry: it may be confirmed, and the recoverer makes it so.
WriteBack ==
    /\ phase = "reading"
    /\ "found" \in Range(answers)
    /\ Go("writing back", entry, WriteBacks(entry, WriteSet(Last(fragments).ensemble, entry)))
    /\ UNCHANGED <<meta, bookies, changes, ownerVars, fragments>>

\* So many lack the entry that it was never confirmed: here the ledger ends.
FindEnd ==
    /\ phase = "reading"
    /\ CannotBeAcked(Cardinality({b \in DOMAIN answers : answers[b] = "missing"}))
    /\ Go("closing", entry, {})
    /\ UNCHANGED <<meta, bookies, changes, ownerVars, fragments>>

ReadNext ==
    /\ phase = "writing back"
    /\ WrittenBack(Cardinality(DOMAIN answers \intersect WriteSet(Last(fragments).ensemble, entry)))
    /\ Read(entry + 1)
    /\ UNCHANGED <<meta, bookies, changes, ownerVars, fragments>>

\* The recoverer's changes reach the metadata when it closes the ledger.
ChangeRecoveryEnsemble(old, new) ==
    LET now == Last(fragments).ensemble
    IN /\ phase = "writing back"
       /\ changes < MaxChanges
       /\ old \in WriteSet(now, entry) \ DOMAIN answers /\ new \notin Range(now)
       /\ fragments' = WithEnsemble(fragments, entry, Replaced(now, old, new))
       /\ network' = network \union WriteBacks(entry, {new})
       /\ changes' = changes + 1
       /\ UNCHANGED <<meta, bookies, ownerVars, phase, entry, answers>>

CloseRecovered ==
    /\ phase = "closing"
    /\ meta.status = "IN_RECOVERY"
    /\ meta' = [version |-> meta.version + 1, status |-> "CLOSED", fragments |-> fragments, last |-> entry - 1]
    /\ Go("closed", entry, {})
    /\ UNCHANGED <<bookies, changes, ownerVars, fragments>>

-----------------------------------------------------------------------------
Deliver(m) ==
    ReceiveAdd(m) \/ ReceiveFence(m) \/ ReceiveRead(m) \/ ReceiveWriteBack(m)
RecovererStep == StartReading \/ WriteBack \/ FindEnd \/ ReadNext \/ CloseRecovered

Next ==
    \/ AddEntry \/ Close \/ StartRecovery \/ RecovererStep
    \/ \E e \in 1..sent : Confirm(e)
    \/ \E old, new \in Bookies : ChangeEnsemble(old, new) \/ ChangeRecoveryEnsemble(old, new)
    \/ \E m \in network : Deliver(m)

Spec == Init /\ [][Next]_vars

\* The recoverer works, and live bookies answer it.
FairSpec ==
    /\ Spec
    /\ WF_vars(RecovererStep)
    /\ \A b \in Live : WF_vars(\E m \in network : FromRecoverer(m) /\ m.bookie = b /\ Deliver(m))

BookieSymmetry == {p \in [Bookies -> Bookies] : \A a, b \in Bookies : a # b => p[a] # p[b]}

-----------------------------------------------------------------------------
TypeOK ==
    /\ meta.status \in {"OPEN", "IN_RECOVERY", "CLOSED"}
    /\ \A b \in Bookies : stored[b] \subseteq 1..sent /\ lacs[b] <= LastAddConfirmed
    /\ fenced \subseteq Bookies
    /\ acks \subseteq (1..sent) \X Bookies
    /\ changes <= MaxChanges
    /\ owner \in {"writing", "stopped", "closed"}
    /\ phase \in {"idle", "fencing", "reading", "writing back", "closing", "closed"}

\* What the owner has confirmed is part of the closed ledger.
NoDivergenceBetweenWriterAndMetaData ==
    meta.status = "CLOSED" => \A e \in Range(confirmed) : e <= meta.last

\* Entries are confirmed one after the other, without a gap.
NoOutOfOrderEntries == \A i \in DOMAIN confirmed : confirmed[i] = i

\* Every entry that is part of the ledger is on as many bookies as acknowledge it.
AllCommittedEntriesReachAckQuorum ==
    \A e \in 1..(IF meta.status = "CLOSED" THEN meta.last ELSE LastAddConfirmed) :
        Cardinality({b \in WriteSet(FragmentOf(meta.fragments, e).ensemble, e) : e \in stored[b]}) >= AckQuorum

\* Fragments begin at the first entry, and each begins after the one before.
OnlyValidFragments ==
    LET frags == meta.fragments
    IN /\ frags[1].first = 1
       /\ \A i \in 1..(Len(frags) - 1) : frags[i].first < frags[i + 1].first
       /\ \A i \in DOMAIN frags : Cardinality(Range(frags[i].ensemble)) = EnsembleSize
       /\ meta.status = "CLOSED" => Last(frags).first <= meta.last + 1

RecoveryEnds == meta.status = "IN_RECOVERY" ~> meta.status = "CLOSED"
=============================================================================
