"""TaskClaiming (specs/TaskClaiming/TaskClaiming.tla) for any number of workers, tasks, failures and crashes."""

import z3
from z3 import And, If, Implies, Not, Or

from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import (
    NO,
    YES,
    Formulas,
    Language,
    Model,
    Step,
    Symbols,
    Wrong,
    added,
    put,
    removed,
)
from specs.proof.walks import walked
from specs.second.task_claiming import State, TaskClaiming

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


def structure(second: TaskClaiming, s: State) -> Structure:
    """A state of the second checker."""
    doing, status = ("idle", "scanning", "executing", "unlocking"), ("init", "committed", "dlq")
    number = lambda value: UNSET if value is None else value
    top = max(2, second.max_failures) + 1
    domains = {"Worker": range(len(s.workers)), "Task": range(len(s.tasks)), "Int": range(top)}
    parts = {
        "max_failures": Part(None, second.max_failures),
        "alive": Part(s.workers, lambda w: s.workers[w].alive),
        "doing": Part(s.workers, lambda w: doing.index(s.workers[w].doing)),
        "task": Part(s.workers, lambda w: number(s.workers[w].task)),
        "status": Part(s.tasks, lambda t: status.index(s.tasks[t].status)),
        "failures": Part(s.tasks, lambda t: s.tasks[t].failures),
        "locked": Part(s.tasks, lambda t: s.tasks[t].owner is not None),
        "owner": Part(s.tasks, lambda t: number(s.tasks[t].owner)),
        "effects": Part(s.tasks, lambda t: s.tasks[t].effects),
    }
    return Structure({sort: tuple(elements) for sort, elements in domains.items()}, parts)


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
    reached=walked,
)
