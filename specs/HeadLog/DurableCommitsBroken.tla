------------------------ MODULE DurableCommitsBroken ------------------------
(***************************************************************************)
(* Wrong decisions: each stands in for the one of the same place in        *)
(* DurableCommits (the manifest says which), and each breaks a promise.    *)
(***************************************************************************)
EXTENDS DurableCommits

\* for BaseIsCurrent: a register is written, whatever it has by now.
StaleBase(cas) == TRUE

\* for Lacks: the newer offset stands, not the higher one.
AskedFor(n, k) == node[n].waiting[k] > 0

\* for InStore: a commit is acknowledged before it is written.
Always(n) == TRUE

\* for KnownAfterSilence: a write without an answer counts as written.
\* for KnownAfterRefusal: so does a write that met another node's.
AsIfWritten(cas) == cas.new

\* for MayLeaveOut: a pair leaves its register before it is in the log.
AnyMayBeLeftOut(n, k) == TRUE

\* for SlotOf: the slot promises more of the log than there is ...
SlotAhead(n, slot) == MaxEntries + 1

\* ... or does not say how much of the log has what was left out.
OldSlot(n, slot) == slot

\* for ReadsOn: a reader stays with the log as it was before it read the registers.
NeverReadsOn(slot, view) == FALSE

\* for ToRead: a reader reads one register of several.
OneRegister(n) == {CHOOSE each \in Nodes : TRUE}

\* for ToRead: the number of registers follows from the nodes that a process knows of. One was started as the
\* only node of the log, the others know of all.
Peers(n) == IF n = CHOOSE each \in Nodes : TRUE THEN {n} ELSE Nodes
AsItCounts(n) == {RegisterOf(peer) : peer \in Peers(n)}
=============================================================================
