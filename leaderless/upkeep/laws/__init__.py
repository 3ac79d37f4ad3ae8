"""The laws of a log, once, at the store: what each change of an object must keep, by invariants.

`Laws.changed(key, new)` is told of every change of an object of one log, in the order of the store. It
remembers what it must, and raises `InvariantBroken` for a change that no program may make. It makes no
request. `lawful.Observer` tells it; so do the simulator, the tests, and the proxy of the bench.

| invariant | at the store | elsewhere |
|---|---|---|
| `OffsetsDense` | `head`: each block of messages begins where its key ended | view |
| `AckedExactlyOnce` | `head`: a writer's batches come once, in order | attempt; the oracle, of answers |
| `TimeRises` | `head`: an entry's time is not below the one before | attempt |
| `TokenNeverFalls`, `ClosedForEver` | `head`: the tokens of a key, and what follows the last | attempt |
| `ConditionKept` | not there: nothing says what was expected | view, attempt; programs of the simulator |
| `NoAppendWhileFenced` | `head`: epoch, state, and what was added | attempt |
| `SegmentsImmutable` | `segment`, `run`, `page`: made once, of what they stand for | sealer, compaction |
| `CommittedReadable` | `head`, `segment`, `compacted`: what is let go of stands elsewhere | readers |
| `CursorNeverPassesCompacted` | `compacted`: the cursor, and which segments are deleted | index |
| `OneLiveClaim` | claims, and all that carries their epochs | lease, index; oracle: how long it stands |
| `ViewIsPrefix`, `PollContiguous` | not there: they are about memory and answers | view, consumer, oracle |

Names beside the nine: `HeadNeverReturns` (law 2 of `attempt`), `ShapeNeverChanges`, `IndexMatchesRuns`,
`CursorNeverMovesBack`, `CommitsKept`, `FailuresCounted`, `InterestKept`, `ValueNeverReturns`, `PlanKept`,
`DataReadable`, `RegistersReadable`.

`leaderless.upkeep.fsck` looks at a state and not at changes, reports all that it finds, and reads a log piece
by piece. What a state can show is a rule in `rules`, and what only a change can show is said here. What runs
and pages hold is said there once more, and not taken from the code that writes them: a mistake of that code
would agree with itself.
"""

from leaderless.upkeep.laws.laws import Laws

__all__ = ["Laws"]
