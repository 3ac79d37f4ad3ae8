"""TaskClaiming (specs/TaskClaiming/TaskClaiming.tla) for any number of workers, tasks, failures and crashes."""

from collections.abc import Mapping

import z3
from z3 import And, If, Implies, Not, Or

from specs.manifest import Configuration
from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import (
    NO,
    YES,
    Formulas,
    Language,
    Model,
    Step,
    Symbols,
    Term,
    Wrong,
    added,
    put,
    removed,
)

LOGIC = Language(w="Worker", v="Worker", t="Task", i=int, p=bool)
each, some = LOGIC.each, LOGIC.some
INIT, COMMITTED, DLQ = map(z3.IntVal, range(3))
IDLE, SCANNING, EXECUTING, UNLOCKING = map(z3.IntVal, range(4))
FACTS = LOGIC.symbols(max_failures="i")
STATE = LOGIC.symbols(
    **{"alive": "w p", "doing": "w i", "task": "w t"},
    **{"status": "t i", "failures": "t i", "locked": "t p", "owner": "t w", "effects": "t i"},
)
F = Symbols(**FACTS)

# Decisions have the names of TaskClaiming.tla.
DEFINITIONS: Formulas = {
    "owns": lambda s, w, t: And(s.locked(t), s.owner(t) == w),
    "works": lambda s, w, t: And(s.doing(w) == EXECUTING, s.task(w) == t),
    "one_more": lambda s, count: If(count < 2, count + 1, count),  # 2 is twice or more
    "may_lock": lambda s, w: And(s.IsFree(s.task(w)), s.IsOpen(s.task(w))),
    # A worker that lives, and does this, goes on to what it does then.
    "step": lambda s, w, doing, when, then, **changes: Step(
        And(s.alive(w), s.doing(w) == doing, when), {**changes, "doing": put(s.doing, w, then)}
    ),
    "IsFree": lambda s, t: Not(s.locked(t)),
    "IsOpen": lambda s, t: s.status(t) == INIT,
    "FailuresSuffice": lambda s, count: count >= F.max_failures,
    "Expires": lambda s, w: Not(s.alive(w)),
    "Released": lambda s, w, t: s.owns(w, t),
    "MayRecover": lambda s, w: each(lambda t: Not(s.owns(w, t))),
}


ACTIONS: Formulas = {
    "ScanTasks": lambda s, w, t: s.step(
        w, IDLE, s.status(t) == INIT, SCANNING, task=put(s.task, w, t)
    ),
    "TryLockSuccess": lambda s, w: s.step(
        w,
        SCANNING,
        s.may_lock(w),
        EXECUTING,
        locked=added(s.locked, s.task(w)),
        owner=put(s.owner, s.task(w), w),
    ),
    "TryLockFail": lambda s, w: s.step(w, SCANNING, Not(s.may_lock(w)), IDLE),
    "ExecuteSuccess": lambda s, w: s.step(
        w,
        EXECUTING,
        YES,
        UNLOCKING,
        status=put(s.status, s.task(w), COMMITTED),
        effects=put(s.effects, s.task(w), s.one_more(s.effects(s.task(w)))),
    ),
    "ExecuteFailure": lambda s, w: s.step(
        w,
        EXECUTING,
        YES,
        UNLOCKING,
        status=put(
            s.status,
            s.task(w),
            If(s.FailuresSuffice(s.failures(s.task(w)) + 1), DLQ, s.status(s.task(w))),
        ),
        failures=put(s.failures, s.task(w), s.failures(s.task(w)) + 1),
    ),
    "UnlockTask": lambda s, w: s.step(
        w,
        UNLOCKING,
        YES,
        IDLE,
        locked=lambda t: And(s.locked(t), Not(And(t == s.task(w), s.Released(w, t)))),
    ),
    "WorkerCrash": lambda s, w: Step(s.alive(w), {"alive": removed(s.alive, w)}),
    "SessionExpiry": lambda s, w: Step(
        And(s.Expires(w), some(lambda t: s.owns(w, t))),
        {
            "locked": lambda t: And(s.locked(t), s.owner(t) != w),
            "doing": lambda v: If(And(v == w, Not(s.alive(w))), IDLE, s.doing(v)),
        },
    ),
    "WorkerRecover": lambda s, w: Step(
        And(Not(s.alive(w)), s.MayRecover(w)),
        {"alive": added(s.alive, w), "doing": put(s.doing, w, IDLE)},
    ),
}


LAWS: Formulas = {
    "TypeOK": lambda s: each(lambda t: And(s.failures(t) >= 0, s.failures(t) <= F.max_failures)),
    "MutualExclusion": lambda s: each(
        lambda w, v, t: Implies(And(s.works(w, t), s.works(v, t)), w == v)
    ),
    "NoDoubleExecution": lambda s: each(
        lambda w, t: Implies(s.status(t) == COMMITTED, Not(s.works(w, t)))
    ),
    "CommittedOnce": lambda s: each(lambda t: s.effects(t) <= 1),
    "DLQOnlyAfterMaxFailures": lambda s: each(
        lambda t: Implies(s.status(t) == DLQ, s.failures(t) >= F.max_failures)
    ),
    "LockConsistency": lambda s: each(
        lambda w, t: Implies(
            And(s.owns(w, t), s.alive(w)),
            And(Or(s.doing(w) == EXECUTING, s.doing(w) == UNLOCKING), s.task(w) == t),
        )
    ),
    "NoOrphanExecution": lambda s: each(
        lambda w, v, t: Implies(And(And(s.owns(w, t), Not(s.alive(w))), s.works(v, t)), v == w)
    ),
    "holds": lambda s: each(lambda w: Implies(s.doing(w) == EXECUTING, s.owns(w, s.task(w)))),
    "open": lambda s: each(lambda w: Implies(s.doing(w) == EXECUTING, s.status(s.task(w)) == INIT)),
    "left": lambda s: each(lambda t: Implies(s.status(t) == INIT, s.failures(t) < F.max_failures)),
    "none_yet": lambda s: each(lambda t: Implies(s.status(t) == INIT, s.effects(t) == 0)),
}
WRONG = {  # of specs/TaskClaiming/TaskClaimingBroken.tla
    ("IsFree", "LockIgnored"): Wrong(lambda s, t: YES, untrue=("MutualExclusion", "holds")),
    ("IsOpen", "StatusNotRead"): Wrong(lambda s, t: YES),
    ("FailuresSuffice", "OneFailureSuffices"): Wrong(lambda s, count: YES),
    ("FailuresSuffice", "NoFailureSuffices"): Wrong(lambda s, count: NO, untrue=("left",)),
    ("Expires", "ExpiresEarly"): Wrong(
        lambda s, w: YES, untrue=("holds", "MutualExclusion", "open")
    ),
    ("Released", "NothingReleased"): Wrong(lambda s, w, t: NO),
    ("MayRecover", "RecoversAtOnce"): Wrong(lambda s, w: YES),
}


def structure(configuration: Configuration, state: Mapping[str, Term]) -> Structure:
    """A state that TLC has found."""
    doing, status = ("IDLE", "SCANNING", "EXECUTING", "UNLOCKING"), ("INIT", "COMMITTED", "DLQ")
    alive, does, at = (state[name] for name in ("workerAlive", "workerState", "workerTask"))
    stands, fails, owner = (state[name] for name in ("taskStatus", "taskFailCount", "lockOwner"))
    effects, most = state["timesCommitted"], int(configuration.constants["MaxFailures"])
    some = lambda value: UNSET if value == "None" else value
    parts = {
        "max_failures": Part(None, most),
        "alive": Part(alive, lambda w: alive[w] == "TRUE"),
        "doing": Part(does, lambda w: doing.index(does[w])),
        "task": Part(at, lambda w: some(at[w])),
        "status": Part(stands, lambda t: status.index(stands[t])),
        "failures": Part(fails, lambda t: fails[t]),
        "locked": Part(owner, lambda t: owner[t] != "None"),
        "owner": Part(owner, lambda t: some(owner[t])),
        "effects": Part(effects, lambda t: effects[t]),
    }
    numbers = tuple(range(max(2, most) + 1))
    return Structure({"Worker": tuple(alive), "Task": tuple(stands), "Int": numbers}, parts)


MODEL = Model(
    language=LOGIC,
    facts=FACTS,
    state=STATE,
    definitions=DEFINITIONS,
    initial=lambda s: And(
        And(F.max_failures >= 1, each(lambda w: And(s.alive(w), s.doing(w) == IDLE))),
        each(lambda t: And(s.status(t) == INIT, s.failures(t) == 0, s.effects(t) == 0)),
        each(lambda t: Not(s.locked(t))),
    ),
    actions=ACTIONS,
    laws=LAWS,
    wrong=WRONG,
    structure=structure,
    visited=("two-workers",),
)
