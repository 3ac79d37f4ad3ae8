------------------------------ MODULE Prefetch ------------------------------
(***************************************************************************)
(* Offsets handed to nodes in blocks, in advance. A node reserves the next *)
(* block with one step on a shared counter and fills it on its own.        *)
(*   shown at once   a message is visible as soon as it is written: a      *)
(*                   higher block may be read before a lower one is full   *)
(*   sealed ranges   a block becomes visible when it is closed and every   *)
(*                   lower one is: holes are then final                    *)
(* Holes in the numbers are legal. Illegal is a message that appears       *)
(* behind a reader.                                                        *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Nodes, Readers, Block, MaxBlocks, None

VARIABLES
    reserved,  \* how many blocks have been given out
    owner,     \* block -> its node, or None when it is closed or not given out
    next,      \* block -> the next offset its owner will fill
    filled,    \* offsets that hold a message
    position,  \* reader -> the first offset it has not gone past
    got        \* reader -> offsets it was given

vars == <<reserved, owner, next, filled, position, got>>

Blocks == 0..(MaxBlocks - 1)
First(b) == b * Block
BlockOf(o) == o \div Block
Offsets == 0..(MaxBlocks * Block - 1)

Init ==
    /\ reserved = 0
    /\ owner = [b \in Blocks |-> None]
    /\ next = [b \in Blocks |-> First(b)]
    /\ filled = {}
    /\ position = [r \in Readers |-> 0]
    /\ got = [r \in Readers |-> {}]

IsClosed(b) == b < reserved /\ owner[b] = None
IsShown(o) == \A b \in 0..BlockOf(o) : IsClosed(b)  \* sealed ranges
MayFill(n, b) == owner[b] = n

Reserve(n) ==
    /\ reserved < MaxBlocks
    /\ \A b \in Blocks : owner[b] # n
    /\ owner' = [owner EXCEPT ![reserved] = n]
    /\ reserved' = reserved + 1
    /\ UNCHANGED <<next, filled, position, got>>

Fill(n, b) ==
    /\ MayFill(n, b)
    /\ next[b] < First(b) + Block
    /\ filled' = filled \union {next[b]}
    /\ next' = [next EXCEPT ![b] = @ + 1]
    /\ UNCHANGED <<reserved, owner, position, got>>

\* The owner is done, or another node closes the block of a slow or dead owner: after this
\* step the owner's writes to the block are refused.
Close(b) ==
    /\ owner[b] # None
    /\ owner' = [owner EXCEPT ![b] = None]
    /\ UNCHANGED <<reserved, next, filled, position, got>>

Shown(r) == {o \in filled : o >= position[r] /\ IsShown(o)}

Poll(r) ==
    /\ Shown(r) # {}
    /\ got' = [got EXCEPT ![r] = @ \union Shown(r)]
    /\ position' = [position EXCEPT ![r] = 1 + (CHOOSE o \in Shown(r) : \A p \in Shown(r) : p <= o)]
    /\ UNCHANGED <<reserved, owner, next, filled>>

Next ==
    \/ \E n \in Nodes : Reserve(n)
    \/ \E n \in Nodes, b \in Blocks : Fill(n, b)
    \/ \E b \in Blocks : Close(b)
    \/ \E r \in Readers : Poll(r)

Spec == Init /\ [][Next]_vars
PollsAreFair == \A r \in Readers : WF_vars(Poll(r))
ClosesAreFair == \A b \in Blocks : WF_vars(Close(b))
FairSpec == Spec /\ PollsAreFair /\ ClosesAreFair

-----------------------------------------------------------------------------
TypeOK ==
    /\ reserved \in 0..MaxBlocks
    /\ filled \subseteq Offsets
    /\ \A b \in Blocks : next[b] \in First(b)..(First(b) + Block)

\* Every message below a reader's position was given to it: none appears behind it.
OrderedReads == \A r \in Readers : \A o \in filled : o < position[r] => o \in got[r]

\* Each message reaches every reader in the end.
EverythingIsRead == \A r \in Readers, o \in Offsets : (o \in filled) ~> (o \in got[r])
=============================================================================
