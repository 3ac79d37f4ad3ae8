-------------------------- MODULE BookKeeperBroken --------------------------
(***************************************************************************)
(* The ledger's recovery as it was before three fixes, and plain mistakes. *)
(***************************************************************************)
EXTENDS BookKeeper

Never == FALSE                                          \* for ReadsFence: issue 2614
LacOnly(lac, first) == lac                              \* for StartsAfter: issue 2615
NewFragments == fragments                               \* for ReadFragments: the recoverer's own changes too
AllAnswered(missing) == missing >= WriteQuorum          \* for CannotBeAcked: issue 1067

AnyEntry(e) == TRUE                                     \* for ConfirmedNext: whichever is acknowledged
One(acked) == acked >= 1                                \* for WrittenBack and EnoughAcks
OneFenced(answered) == answered # {}                    \* for FencingCovers
Itself(e) == e                                          \* for LacSent: not confirmed yet
OneMissing(missing) == missing >= 1                     \* for CannotBeAcked
=============================================================================
