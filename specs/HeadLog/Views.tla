------------------------------- MODULE Views -------------------------------
(***************************************************************************)
(* A node's view of the log: the pure half of HeadLog (the fold).          *)
(*                                                                         *)
(*   entry  [id, payload, epoch, first, count, commits, expected]          *)
(*          id = [node, incarnation, seq]: the writer is <<node,           *)
(*          incarnation>>; first and count give each key's block of        *)
(*          offsets; commits the numbers that ride along (0: none):        *)
(*          consumer offsets, and tokens of keys. payload, epoch and       *)
(*          expected are ghosts: what the entry really carries, the epoch  *)
(*          its committer believed in, and where keys had to end.          *)
(*   view   [length, blocks, latest, committed]                            *)
(*          length in slots; blocks: per key the sequence of blocks        *)
(*          [id, first, count]; latest: the highest seq per writer (all    *)
(*          that deduplication needs); committed: offsets and tokens.      *)
(*   run    a compacted segment: the view of that segment alone.           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Nodes, Keys,
    Conditioned,    \* keys whose batches may have conditions
    Closed,         \* the token of a key that takes no messages any more, the highest
    MaxIncarnation  \* restarts, of all nodes together

Writers == Nodes \X (0..MaxIncarnation)
Writer(id) == <<id.node, id.incarnation>>
Max(a, b) == IF a >= b THEN a ELSE b

\* The token of a key rides beside consumer offsets, under a name of its own.
TokenOf(k) == <<"token", k>>
Names == Keys \union {TokenOf(k) : k \in Conditioned}

EmptyView == [length    |-> 0,
              blocks    |-> [k \in Keys |-> <<>>],
              latest    |-> [w \in Writers |-> 0],
              committed |-> [k \in Names |-> 0]]

EndOffset(blocks) == IF blocks = <<>> THEN 0
                 ELSE blocks[Len(blocks)].first + blocks[Len(blocks)].count

\* The first offset an append of key k gets by a node with this view.
FirstOffset(view, k) == EndOffset(view.blocks[k])

\* Is this batch in the log already? A writer's batches are strictly ordered, so the highest
\* committed seq of each writer answers for all of them.
InLog(view, id) == view.latest[Writer(id)] >= id.seq

Apply(view, e) ==
    [length    |-> view.length + 1,
     blocks    |-> [k \in Keys |->
                      IF e.count[k] = 0 THEN view.blocks[k]
                      ELSE Append(view.blocks[k],
                                  [id |-> e.id, first |-> e.first[k], count |-> e.count[k]])],
     latest    |-> [view.latest EXCEPT ![Writer(e.id)] = Max(@, e.id.seq)],
     committed |-> [k \in Names |-> Max(view.committed[k], e.commits[k])]]

RECURSIVE ApplyAll(_, _)
ApplyAll(view, entries) ==
    IF entries = <<>> THEN view ELSE ApplyAll(Apply(view, Head(entries)), Tail(entries))

Fold(entries) == ApplyAll(EmptyView, entries)

\* A compacted segment keeps the per-key blocks and the writers' highest seq, not the entries.
RunOf(segment) == Fold(segment)

\* Take from a run the part that the view lacks: it may have seen some of it as a tail.
Merge(view, run, length) ==
    [length    |-> length,
     blocks    |-> [k \in Keys |->
                      view.blocks[k] \o SelectSeq(run.blocks[k],
                         LAMBDA b : b.first >= EndOffset(view.blocks[k]))],
     latest    |-> [w \in Writers |-> Max(view.latest[w], run.latest[w])],
     committed |-> [k \in Names |-> Max(view.committed[k], run.committed[k])]]

Offsets(block) == [i \in 1..block.count |-> block.first + i - 1]

RECURSIVE Flatten(_)
Flatten(blocks) ==
    IF blocks = <<>> THEN <<>> ELSE Offsets(Head(blocks)) \o Flatten(Tail(blocks))

\* The offsets a poll of key k from offset `from` answers: the ceiling look-up finds the first
\* block that ends at or after `from`; everything behind it follows without a gap.
PollAnswer(view, k, from) ==
    SelectSeq(Flatten(SelectSeq(view.blocks[k], LAMBDA b : b.first + b.count > from)),
              LAMBDA o : o >= from)
=============================================================================
