---------------------------- MODULE VacuumBroken ----------------------------
(***************************************************************************)
(* The rules of earlier releases, and plain mistakes.                      *)
(***************************************************************************)
EXTENDS Vacuum

NoEpochRaised == <<"list", "head", "segment", "run", "delete">>              \* for Steps
ReadsBeforeItRaises == <<"list", "head", "segment", "run", "raise", "delete">>
ListsAfterItRaised == <<"raise", "list", "head", "segment", "run", "delete">>
ListsLast == <<"raise", "head", "segment", "run", "list", "delete">>
RunsBeforeSegments == <<"list", "raise", "head", "run", "segment", "delete">>
AnyEpoch(a) == TRUE       \* for InItsEpoch
AsLate == TRUE            \* for LearnsLate
EpochTooFar == MaxEpoch + 1   \* for NextEpoch

\* The rule of earlier releases: no epoch. An append gives up when its object is older than 1 by its own
\* clock, and a vacuum deletes what is older than 2.
Patient(a) == appender[a].felt < 1   \* for InItsEpoch
Aged(o) == age[o] >= 2               \* for IsOld
OldByAClockAhead(o) == TRUE          \* for IsOld: that of a client, where the store tells no times
NobodySleeps == {{}}                 \* for Suspended
AnyMaySleep == SUBSET Appenders
=============================================================================
