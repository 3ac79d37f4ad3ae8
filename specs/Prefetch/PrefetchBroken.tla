--------------------------- MODULE PrefetchBroken ---------------------------
(***************************************************************************)
(* Other decisions; each replaces the one that it names.                   *)
(***************************************************************************)
EXTENDS Prefetch

ShownAtOnce(o) == TRUE                   \* for IsShown
FillAfterClose(n, b) == b < reserved     \* for MayFill: closing does not stop the owner
BlocksTooFar(b) == b * Block + MaxBlocks * Block  \* for First: blocks outside the offset space
NeverClosed == TRUE                      \* for ClosesAreFair: an abandoned block stays open
=============================================================================
