-------------------------- MODULE RegisterClaiming --------------------------
(***************************************************************************)
(* Task claiming on plain compare-and-set registers: no sessions, no       *)
(* ephemeral keys. The task's register holds its owner, an epoch raised by *)
(* every claim, and a beat that the owner advances while it works. A       *)
(* worker that sees the beat stand still takes the task over.              *)
(*                                                                         *)
(* A beat that stands still may belong to a worker that is only slow. So   *)
(* two workers may RUN a task at one time (MutualExclusion cannot hold).   *)
(* But only the effects of the current epoch count, because every effect   *)
(* is a cas from the register value of one's own claim.                    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Workers, MaxFailures, MaxCrashes, None,
    MaxWrongTakeOvers,  \* take-overs from a worker that is alive: the price of a short patience
    MaxEpoch            \* only the type's bound: claims end by themselves

VARIABLES
    task,      \* the register: [owner, epoch, beat, status, failures]
    worker,    \* [phase, epoch]: "idle", "running" or "dead"
    seen,      \* worker -> the [epoch, beat] it saw last of another's claim, or None
    crashes, wrongTakeOvers,
    effects    \* ghost: set of [worker, epoch, current]: every effect, and the epoch it met

vars == <<task, worker, seen, crashes, wrongTakeOvers, effects>>

Idle == [phase |-> "idle", epoch |-> 0]

Init ==
    /\ task = [owner |-> None, epoch |-> 0, beat |-> 0, status |-> "INIT", failures |-> 0]
    /\ worker = [w \in Workers |-> Idle]
    /\ seen = [w \in Workers |-> None]
    /\ crashes = 0 /\ wrongTakeOvers = 0
    /\ effects = {}

NextEpoch == task.epoch + 1
Holds(w) == task.owner = w /\ task.epoch = worker[w].epoch  \* the cas of an effect succeeds
MayTakeOver(w) == seen[w] = [epoch |-> task.epoch, beat |-> task.beat]
FailuresSuffice(count) == count >= MaxFailures

Take(w) ==
    /\ worker[w].phase = "idle"
    /\ task.status = "INIT"
    /\ task' = [task EXCEPT !.owner = w, !.epoch = NextEpoch, !.beat = 0]
    /\ worker' = [worker EXCEPT ![w] = [phase |-> "running", epoch |-> NextEpoch]]
    /\ seen' = [seen EXCEPT ![w] = None]

Claim(w) ==
    /\ task.owner = None
    /\ Take(w)
    /\ UNCHANGED <<crashes, wrongTakeOvers, effects>>

Look(w) ==
    /\ worker[w].phase = "idle" /\ task.owner # None /\ task.status = "INIT"
    /\ seen' = [seen EXCEPT ![w] = [epoch |-> task.epoch, beat |-> task.beat]]
    /\ UNCHANGED <<task, worker, crashes, wrongTakeOvers, effects>>

OwnerAtWork == worker[task.owner].phase = "running" /\ worker[task.owner].epoch = task.epoch

TakeOver(w) ==
    /\ task.owner # None
    /\ MayTakeOver(w)
    /\ OwnerAtWork => wrongTakeOvers < MaxWrongTakeOvers
    /\ wrongTakeOvers' = wrongTakeOvers + (IF OwnerAtWork THEN 1 ELSE 0)
    /\ Take(w)
    /\ UNCHANGED <<crashes, effects>>

Beat(w) ==
    /\ worker[w].phase = "running" /\ Holds(w)
    /\ task' = [task EXCEPT !.beat = 1 - @]  \* two values do: a look compares with the last one
    /\ UNCHANGED <<worker, seen, crashes, wrongTakeOvers, effects>>

\* The effect of the work: one cas that also ends the claim.
Finish(w, status, failures) ==
    /\ worker[w].phase = "running"
    /\ Holds(w)
    /\ task' = [task EXCEPT !.owner = None, !.status = status, !.failures = failures]
    /\ worker' = [worker EXCEPT ![w] = Idle]
    /\ UNCHANGED <<seen, crashes, wrongTakeOvers>>

ExecuteSuccess(w) ==
    /\ Finish(w, "COMMITTED", task.failures)
    /\ effects' = effects \union {[worker |-> w, epoch |-> worker[w].epoch,
                                   current |-> task.epoch]}

ExecuteFailure(w) ==
    /\ Finish(w, IF FailuresSuffice(task.failures + 1) THEN "DLQ" ELSE "INIT",
              task.failures + 1)
    /\ UNCHANGED effects

\* The cas of a stale worker fails: so it learns that it has lost its claim.
StaleRefused(w) ==
    /\ worker[w].phase = "running"
    /\ ~Holds(w)
    /\ worker' = [worker EXCEPT ![w] = Idle]
    /\ UNCHANGED <<task, seen, crashes, wrongTakeOvers, effects>>

WorkerCrash(w) ==
    /\ worker[w].phase # "dead" /\ crashes < MaxCrashes
    /\ crashes' = crashes + 1
    /\ worker' = [worker EXCEPT ![w] = [phase |-> "dead", epoch |-> 0]]
    /\ seen' = [seen EXCEPT ![w] = None]
    /\ UNCHANGED <<task, wrongTakeOvers, effects>>

WorkerRecover(w) ==
    /\ worker[w].phase = "dead"
    /\ worker' = [worker EXCEPT ![w] = Idle]
    /\ UNCHANGED <<task, seen, crashes, wrongTakeOvers, effects>>

Next ==
    \E w \in Workers :
        \/ Claim(w) \/ Look(w) \/ TakeOver(w) \/ Beat(w) \/ ExecuteSuccess(w)
        \/ ExecuteFailure(w) \/ StaleRefused(w) \/ WorkerCrash(w) \/ WorkerRecover(w)

WorkIsFair ==
    \A w \in Workers :
        /\ SF_vars(Claim(w)) /\ SF_vars(ExecuteSuccess(w)) /\ WF_vars(StaleRefused(w))
        /\ WF_vars(WorkerRecover(w))
TakeOverIsFair == \A w \in Workers : WF_vars(Look(w)) /\ SF_vars(TakeOver(w))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WorkIsFair /\ TakeOverIsFair

-----------------------------------------------------------------------------
TypeOK ==
    /\ task.status \in {"INIT", "COMMITTED", "DLQ"}
    /\ task.epoch \in 0..MaxEpoch
    /\ task.failures \in 0..MaxFailures

\* At most one worker holds the task's current epoch.
OneLiveClaim ==
    Cardinality({w \in Workers : worker[w].phase = "running"
                                 /\ worker[w].epoch = task.epoch}) <= 1

\* Every effect belonged to the epoch current at that moment, and there was one at most.
FencedEffects == \A e \in effects : e.epoch = e.current
CommittedOnce == Cardinality(effects) <= 1
EpochNeverDecreases == [][task'.epoch >= task.epoch]_vars
DLQOnlyAfterMaxFailures == task.status = "DLQ" => task.failures >= MaxFailures

TaskCompletion == (task.status = "INIT") ~> (task.status # "INIT")

\* This cannot hold: a stale worker may still be running.
MutualExclusion == Cardinality({w \in Workers : worker[w].phase = "running"}) <= 1

WorkerSymmetry == {p \in [Workers -> Workers] : \A a, b \in Workers : a # b => p[a] # p[b]}
=============================================================================
