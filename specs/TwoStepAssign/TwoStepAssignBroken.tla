------------------------ MODULE TwoStepAssignBroken ------------------------
(***************************************************************************)
(* As published, half a repair, and plain mistakes.                        *)
(***************************************************************************)
EXTENDS TwoStepAssign

PutAlways(old) == Wal      \* for Put: unconditional, as published
DeletedForGood == Empty    \* for DeletedEntry: a real deletion, as published
AppendsInTurn == compactor \in {"idle", "done"}              \* for MayAppend
CompactsInTurn == \A w \in Writers : writer[w].phase = "idle"  \* for MayCompact
NothingPending == 0        \* for PendingAfter: a plain counter
CursorTooFar == RangeLast + 2  \* for CursorAfter
NobodyHelps == TRUE        \* for HelpIsFair
=============================================================================
