-------------------------- MODULE HeadLogReleases --------------------------
(***************************************************************************)
(* A log of the older format, which processes of two releases share. Its   *)
(* head says nothing of limits. A process of the older release goes by its *)
(* own limit, takes a segment that it finds for the whole tail, and moves  *)
(* the base past that tail. A process of the newer release goes by the     *)
(* lowest limit that the older release had, and never adds to a tail of    *)
(* that size. Before it writes the segment, or with the append that fills  *)
(* the tail, it marks the head: it raises the field `size` beyond every    *)
(* limit. Then the tail is full for all, and nobody adds to it.            *)
(*                                                                         *)
(* That suffices if all older processes have one limit, low or high: they  *)
(* agree among themselves. If they differ, they lose entries without any   *)
(* newer process (own-limits in the manifest), and beside one.             *)
(*                                                                         *)
(* An upgrade writes the shape into the head. An older process cannot name *)
(* such a head, so its cas changes nothing any more. But its write of a    *)
(* segment may still be on its way: there the contents decide.             *)
(***************************************************************************)
EXTENDS HeadLogProperties

Older == {OneNode}              \* the nodes of the older release, or in its place ...
AllButOne == Nodes \ {OneNode}
LowestLimit == 1                \* of all that a process of the older release may have

IsOldFormat(h) == h.limit = None

\* For IsFull, MaySeal, Marks and Freed; NoShape stands for ShapeOf.
FullForItsRelease(n, h) ==
    \/ h.marked
    \/ Len(h.tail) >= (IF ~IsOldFormat(h) THEN h.limit ELSE IF n \in Older THEN LimitOf(n) ELSE LowestLimit)
SealsWhatIsFinal(n, h) == FullForItsRelease(n, h) /\ (n \in Older \/ h.marked \/ ~IsOldFormat(h))
MarksWhatItFills(n, h) == n \notin Older /\ IsOldFormat(h) /\ FullForItsRelease(n, h)
FreedByRelease(n, h) == IF n \in Older THEN Len(h.tail) ELSE Len(segments[h.base])

\* A newer process changes the head in an older log, without an entry; LateCommit does it if no answer comes.
MayChange(n) ==
    /\ n \notin Older
    /\ known[n] # None /\ IsOldFormat(known[n])
    /\ SameHead(known[n], head)  \* otherwise it is refused, like a Conflict

ChangeHead(n, to) ==
    LET request == [from |-> known[n], to |-> to, entries |-> <<>>] IN
    /\ \/ head' = Accepted(request) /\ known' = [known EXCEPT ![n] = head'] /\ UNCHANGED inflight
       \/ /\ MaxInFlight > 0
          /\ \E kept \in Kept(inflight, MaxInFlight) : inflight' = kept \union {request}
          /\ known' = [known EXCEPT ![n] = None] /\ UNCHANGED head
    /\ UNCHANGED <<segments, runs, task, log, incarnation, seq, view, batch, worker, handovers, answers, told>>

Mark(n) ==
    /\ MayChange(n)
    /\ IsFull(n, known[n]) /\ ~known[n].marked
    /\ ChangeHead(n, [known[n] EXCEPT !.marked = TRUE])

Upgrade(n) == MayChange(n) /\ ChangeHead(n, [known[n] EXCEPT !.limit = LimitOf(n)])

ReleasesNext == Next \/ \E n \in Nodes : Mark(n)
ReleasesSpec == Init /\ [][ReleasesNext]_vars

\* An older process reads no head of the newer format.
ReadsItsFormat == \A n \in Older : known'[n] = None \/ IsOldFormat(known'[n])

UpgradeNext == (ReleasesNext \/ \E n \in Nodes : Upgrade(n)) /\ ReadsItsFormat
UpgradeSpec == Init /\ [][UpgradeNext]_vars

OldSymmetry == {p \in NodeSymmetry : p[OneNode] = OneNode}
=============================================================================
