----------------------- MODULE RegisterClaimingBroken -----------------------
(***************************************************************************)
(* Wrong decisions; each replaces the one that it names.                   *)
(***************************************************************************)
EXTENDS RegisterClaiming

SameEpoch == 1                                 \* for NextEpoch: a claim does not raise it
EpochWraps == (task.epoch + 1) % 3             \* for NextEpoch: it starts again from 0
EpochIgnored(w) == TRUE                        \* for Holds: effects are written blindly
OneFailureSuffices(count) == TRUE              \* for FailuresSuffice
NoFailureSuffices(count) == FALSE
NotFair == TRUE                                \* for the fairness conditions
=============================================================================
