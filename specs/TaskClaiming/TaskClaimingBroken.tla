------------------------- MODULE TaskClaimingBroken -------------------------
(***************************************************************************)
(* Wrong decisions; each replaces the one that it names.                   *)
(***************************************************************************)
EXTENDS TaskClaiming

LockIgnored(t) == TRUE               \* for IsFree: the lock is written, although another holds it
StatusNotRead(t) == TRUE             \* for IsOpen: no second look between scan and lock
OneFailureSuffices(count) == TRUE    \* for FailuresSuffice
NoFailureSuffices(count) == FALSE
ExpiresEarly(w) == TRUE              \* for Expires: a session may end while its worker lives
NothingReleased(w, t) == FALSE       \* for Released: the lock outlives the work
RecoversAtOnce(w) == TRUE            \* for MayRecover: as the published document states it
NotFair == TRUE                      \* for the fairness conditions
=============================================================================
