---------------------------- MODULE TaskClaiming ----------------------------
(***************************************************************************)
(* Task claiming on a store with ephemeral keys: a worker scans for an     *)
(* open task, creates its lock (tied to the worker's session), executes,   *)
(* releases. When a worker dies, the store drops its locks after a while.  *)
(* The lock vanishes only with a worker that is really dead. That is the   *)
(* assumption; RegisterClaiming does not make it.                          *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Workers, Tasks, MaxFailures, None

VARIABLES
    taskStatus,     \* "INIT", "COMMITTED" or "DLQ" (dead letter)
    taskFailCount,
    lockOwner,      \* task -> worker or None
    workerAlive,
    workerState,    \* "IDLE", "SCANNING", "EXECUTING" or "UNLOCKING"
    workerTask,
    timesCommitted  \* ghost: how often a task's effect took place (2: twice or more)

vars == <<taskStatus, taskFailCount, lockOwner, workerAlive, workerState, workerTask,
          timesCommitted>>

Init ==
    /\ taskStatus = [t \in Tasks |-> "INIT"]
    /\ taskFailCount = [t \in Tasks |-> 0]
    /\ lockOwner = [t \in Tasks |-> None]
    /\ workerAlive = [w \in Workers |-> TRUE]
    /\ workerState = [w \in Workers |-> "IDLE"]
    /\ workerTask = [w \in Workers |-> None]
    /\ timesCommitted = [t \in Tasks |-> 0]

-----------------------------------------------------------------------------
IsFree(t) == lockOwner[t] = None
IsOpen(t) == taskStatus[t] = "INIT"
FailuresSuffice(count) == count >= MaxFailures
Expires(w) == ~workerAlive[w]        \* a session ends only when its worker is dead
Released(w, t) == lockOwner[t] = w   \* one's own lock only
StatusAfter == "COMMITTED"
MayRecover(w) == \A t \in Tasks : lockOwner[t] # w  \* when its old session is over

Is(w, state) == workerAlive[w] /\ workerState[w] = state
Become(w, state, t) ==
    /\ workerState' = [workerState EXCEPT ![w] = state]
    /\ workerTask' = [workerTask EXCEPT ![w] = t]

ScanTasks(w, t) ==
    /\ Is(w, "IDLE") /\ taskStatus[t] = "INIT"
    /\ Become(w, "SCANNING", t)
    /\ UNCHANGED <<taskStatus, taskFailCount, lockOwner, workerAlive, timesCommitted>>

TryLockSuccess(w) ==
    /\ Is(w, "SCANNING")
    /\ LET t == workerTask[w] IN
       /\ IsFree(t) /\ IsOpen(t)
       /\ lockOwner' = [lockOwner EXCEPT ![t] = w]
       /\ Become(w, "EXECUTING", t)
    /\ UNCHANGED <<taskStatus, taskFailCount, workerAlive, timesCommitted>>

TryLockFail(w) ==
    /\ Is(w, "SCANNING")
    /\ ~IsFree(workerTask[w]) \/ ~IsOpen(workerTask[w])
    /\ Become(w, "IDLE", None)
    /\ UNCHANGED <<taskStatus, taskFailCount, lockOwner, workerAlive, timesCommitted>>

ExecuteSuccess(w) ==
    /\ Is(w, "EXECUTING")
    /\ LET t == workerTask[w] IN
       /\ taskStatus' = [taskStatus EXCEPT ![t] = StatusAfter]
       /\ timesCommitted' = [timesCommitted EXCEPT ![t] = IF @ < 2 THEN @ + 1 ELSE @]
       /\ Become(w, "UNLOCKING", t)
    /\ UNCHANGED <<taskFailCount, lockOwner, workerAlive>>

ExecuteFailure(w) ==
    /\ Is(w, "EXECUTING")
    /\ LET t == workerTask[w] IN
       /\ taskFailCount' = [taskFailCount EXCEPT ![t] = @ + 1]
       /\ taskStatus' = [taskStatus EXCEPT ![t] =
             IF FailuresSuffice(taskFailCount'[t]) THEN "DLQ" ELSE @]
       /\ Become(w, "UNLOCKING", t)
    /\ UNCHANGED <<lockOwner, workerAlive, timesCommitted>>

UnlockTask(w) ==
    /\ Is(w, "UNLOCKING")
    /\ LET t == workerTask[w] IN
       lockOwner' = [lockOwner EXCEPT ![t] = IF Released(w, t) THEN None ELSE @]
    /\ Become(w, "IDLE", None)
    /\ UNCHANGED <<taskStatus, taskFailCount, workerAlive, timesCommitted>>

WorkerCrash(w) ==
    /\ workerAlive[w]
    /\ workerAlive' = [workerAlive EXCEPT ![w] = FALSE]
    /\ UNCHANGED <<taskStatus, taskFailCount, lockOwner, workerState, workerTask,
                   timesCommitted>>

\* The store drops the dead worker's locks. The memory of the process is gone, too.
SessionExpiry(w) ==
    /\ Expires(w)
    /\ \E t \in Tasks : lockOwner[t] = w
    /\ lockOwner' = [t \in Tasks |-> IF lockOwner[t] = w THEN None ELSE lockOwner[t]]
    /\ IF workerAlive[w] THEN UNCHANGED <<workerState, workerTask>> ELSE Become(w, "IDLE", None)
    /\ UNCHANGED <<taskStatus, taskFailCount, workerAlive, timesCommitted>>

\* A fresh process with a fresh session, so the locks of the old one cannot be taken for its own.
WorkerRecover(w) ==
    /\ ~workerAlive[w]
    /\ MayRecover(w)
    /\ workerAlive' = [workerAlive EXCEPT ![w] = TRUE]
    /\ Become(w, "IDLE", None)
    /\ UNCHANGED <<taskStatus, taskFailCount, lockOwner, timesCommitted>>

Next ==
    \/ \E w \in Workers, t \in Tasks : ScanTasks(w, t)
    \/ \E w \in Workers :
          \/ TryLockSuccess(w) \/ TryLockFail(w) \/ ExecuteSuccess(w) \/ ExecuteFailure(w)
          \/ UnlockTask(w) \/ WorkerCrash(w) \/ SessionExpiry(w) \/ WorkerRecover(w)

\* Workers may crash for ever; the strong form says that they also live long enough for a step
\* again and again. The failure count is bounded by the protocol itself (DLQ), so no state
\* constraint is needed that could hide a liveness violation.
WorkIsFair ==
    \A w \in Workers :
        /\ \A t \in Tasks : SF_vars(ScanTasks(w, t))
        /\ SF_vars(TryLockSuccess(w)) /\ WF_vars(TryLockFail(w))
        /\ SF_vars(ExecuteSuccess(w)) /\ WF_vars(UnlockTask(w))
RecoveryIsFair == \A w \in Workers : WF_vars(SessionExpiry(w)) /\ WF_vars(WorkerRecover(w))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WorkIsFair /\ RecoveryIsFair

-----------------------------------------------------------------------------
TypeOK ==
    /\ \A t \in Tasks : /\ taskStatus[t] \in {"INIT", "COMMITTED", "DLQ"}
                        /\ taskFailCount[t] \in 0..MaxFailures
                        /\ lockOwner[t] \in Workers \union {None}
    /\ \A w \in Workers : workerTask[w] \in Tasks \union {None}

Executing(t) == {w \in Workers : workerState[w] = "EXECUTING" /\ workerTask[w] = t}

MutualExclusion == \A t \in Tasks : Cardinality(Executing(t)) <= 1
\* Published form: no worker executes a committed task. Strong form: its effect happens once.
NoDoubleExecution == \A t \in Tasks : taskStatus[t] = "COMMITTED" => Executing(t) = {}
CommittedOnce == \A t \in Tasks : timesCommitted[t] <= 1
DLQOnlyAfterMaxFailures ==
    \A t \in Tasks : taskStatus[t] = "DLQ" => taskFailCount[t] >= MaxFailures
LockConsistency ==
    \A t \in Tasks, w \in Workers : lockOwner[t] = w /\ workerAlive[w] => workerTask[w] = t
NoOrphanExecution ==
    \A t \in Tasks, w \in Workers :
        lockOwner[t] = w /\ ~workerAlive[w] => Executing(t) \subseteq {w}

TaskCompletion == \A t \in Tasks : (taskStatus[t] = "INIT") ~> (taskStatus[t] # "INIT")
CrashRecovery ==
    \A t \in Tasks, w \in Workers :
        (lockOwner[t] = w /\ ~workerAlive[w]) ~> (lockOwner[t] # w)
NoStarvation == \A t \in Tasks : (taskStatus[t] = "INIT") ~> (Executing(t) # {})

WorkerSymmetry == {p \in [Workers -> Workers] : \A a, b \in Workers : a # b => p[a] # p[b]}
=============================================================================
