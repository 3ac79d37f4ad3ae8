"""TaskClaiming (specs/TaskClaiming/TaskClaiming.tla) for any number of workers, tasks, failures and crashes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import z3
from z3 import And, If, Implies, Not, Or

from specs.proof.evaluation import UNSET, Part, Structure
from specs.proof.language import Language, Model, Step, Symbols, Term, added, put, removed
from specs.second.task_claiming import State, TaskClaiming

LOGIC = Language(w="Worker", v="Worker", t="Task", i=int, p=bool)
each, some = LOGIC.each, LOGIC.some
YES, NO = z3.BoolVal(True), z3.BoolVal(False)
INIT, COMMITTED, DLQ = map(z3.IntVal, range(3))
IDLE, SCANNING, EXECUTING, UNLOCKING = map(z3.IntVal, range(4))
FACTS = LOGIC.symbols(max_failures="i")
STATE = LOGIC.symbols(
    **{"alive": "w p", "doing": "w i", "task": "w t"},
    **{"status": "t i", "failures": "t i", "locked": "t p", "owner": "t w", "effects": "t i"},
)
F = Symbols(**FACTS)


def owns(s: Any, w: Term, t: Term) -> Term:
    return And(s.locked(t), s.owner(t) == w)


# Each under the name that it has in TaskClaiming.tla.
DECISIONS = {
    "IsFree": lambda s, t: Not(s.locked(t)),
    "IsOpen": lambda s, t: s.status(t) == INIT,
    "FailuresSuffice": lambda count: count >= F.max_failures,
    "Expires": lambda s, w: Not(s.alive(w)),
    "Released": owns,
    "MayRecover": lambda s, w: each(lambda t: Not(owns(s, w, t))),
}


def step(s: Any, w: Term, doing: Term, when: Term, then: Term, **changes: Any) -> Step:
    """A worker that lives, and does this, goes on to what it does then."""
    is_it = And(s.alive(w), s.doing(w) == doing, when)
    return Step(is_it, {**changes, "doing": put(s.doing, w, then)})


def try_lock_success(m: Any, s: Any, w: Term) -> Step:
    t = s.task(w)
    lock = {"locked": added(s.locked, t), "owner": put(s.owner, t, w)}
    return step(s, w, SCANNING, And(m.IsFree(s, t), m.IsOpen(s, t)), EXECUTING, **lock)


def try_lock_fail(m: Any, s: Any, w: Term) -> Step:
    t = s.task(w)
    return step(s, w, SCANNING, Not(And(m.IsFree(s, t), m.IsOpen(s, t))), IDLE)


def execute_success(m: Any, s: Any, w: Term) -> Step:
    t = s.task(w)
    effects = put(s.effects, t, If(s.effects(t) < 2, s.effects(t) + 1, s.effects(t)))
    done = {"status": put(s.status, t, COMMITTED), "effects": effects}
    return step(s, w, EXECUTING, YES, UNLOCKING, **done)


def execute_failure(m: Any, s: Any, w: Term) -> Step:
    t, count = s.task(w), s.failures(s.task(w)) + 1
    status = put(s.status, t, If(m.FailuresSuffice(count), DLQ, s.status(t)))
    return step(s, w, EXECUTING, YES, UNLOCKING, status=status, failures=put(s.failures, t, count))


def unlock_task(m: Any, s: Any, w: Term) -> Step:
    locked = lambda t: And(s.locked(t), Not(And(t == s.task(w), m.Released(s, w, t))))
    return step(s, w, UNLOCKING, YES, IDLE, locked=locked)


def session_expiry(m: Any, s: Any, w: Term) -> Step:
    locked = lambda t: And(s.locked(t), s.owner(t) != w)
    doing = lambda v: If(And(v == w, Not(s.alive(w))), IDLE, s.doing(v))
    when = And(m.Expires(s, w), some(lambda t: owns(s, w, t)))
    return Step(when, {"locked": locked, "doing": doing})


def worker_recover(m: Any, s: Any, w: Term) -> Step:
    changes = {"alive": added(s.alive, w), "doing": put(s.doing, w, IDLE)}
    return Step(And(Not(s.alive(w)), m.MayRecover(s, w)), changes)


ACTIONS: Mapping[str, Any] = {
    "ScanTasks": lambda m, s, w, t: step(
        s, w, IDLE, s.status(t) == INIT, SCANNING, task=put(s.task, w, t)
    ),
    "TryLockSuccess": try_lock_success,
    "TryLockFail": try_lock_fail,
    "ExecuteSuccess": execute_success,
    "ExecuteFailure": execute_failure,
    "UnlockTask": unlock_task,
    "WorkerCrash": lambda m, s, w: Step(s.alive(w), {"alive": removed(s.alive, w)}),
    "SessionExpiry": session_expiry,
    "WorkerRecover": worker_recover,
}


def initial(s: Any) -> Term:
    task = lambda t: And(s.status(t) == INIT, s.failures(t) == 0, s.effects(t) == 0)
    return And(
        And(F.max_failures >= 1, each(lambda w: And(s.alive(w), s.doing(w) == IDLE))),
        each(lambda t: And(task(t), Not(s.locked(t)))),
    )


def invariant(s: Any) -> dict[str, Term]:
    works = lambda w, t: And(s.doing(w) == EXECUTING, s.task(w) == t)
    dead = lambda w, t: And(owns(s, w, t), Not(s.alive(w)))
    busy = lambda w: Or(s.doing(w) == EXECUTING, s.doing(w) == UNLOCKING)
    at_it = lambda w, t: And(busy(w), s.task(w) == t)
    return {
        "TypeOK": each(lambda t: And(s.failures(t) >= 0, s.failures(t) <= F.max_failures)),
        "MutualExclusion": each(lambda w, v, t: Implies(And(works(w, t), works(v, t)), w == v)),
        "NoDoubleExecution": each(lambda w, t: Implies(s.status(t) == COMMITTED, Not(works(w, t)))),
        "CommittedOnce": each(lambda t: s.effects(t) <= 1),
        "DLQOnlyAfterMaxFailures": each(
            lambda t: Implies(s.status(t) == DLQ, s.failures(t) >= F.max_failures)
        ),
        "LockConsistency": each(lambda w, t: Implies(And(owns(s, w, t), s.alive(w)), at_it(w, t))),
        "NoOrphanExecution": each(lambda w, v, t: Implies(And(dead(w, t), works(v, t)), v == w)),
        "holds": each(lambda w: Implies(s.doing(w) == EXECUTING, owns(s, w, s.task(w)))),
        "open": each(lambda w: Implies(s.doing(w) == EXECUTING, s.status(s.task(w)) == INIT)),
        "left": each(lambda t: Implies(s.status(t) == INIT, s.failures(t) < F.max_failures)),
        "none_yet": each(lambda t: Implies(s.status(t) == INIT, s.effects(t) == 0)),
    }


# By what the manifest names: the operator, and what stands in for it; then the helpers that this makes false.
INSTEAD: Mapping[tuple[str, str], Any] = {
    ("IsFree", "LockIgnored"): lambda s, t: YES,
    ("IsOpen", "StatusNotRead"): lambda s, t: YES,
    ("FailuresSuffice", "OneFailureSuffices"): lambda count: YES,
    ("FailuresSuffice", "NoFailureSuffices"): lambda count: NO,
    ("Expires", "ExpiresEarly"): lambda s, w: YES,
    ("Released", "NothingReleased"): lambda s, w, t: NO,
    ("MayRecover", "RecoversAtOnce"): lambda s, w: YES,
}
UNTRUE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("IsFree", "LockIgnored"): ("MutualExclusion", "holds"),
    ("FailuresSuffice", "NoFailureSuffices"): ("left",),
    ("Expires", "ExpiresEarly"): ("holds", "MutualExclusion", "open"),
}


def model(m: Any) -> Model:
    """TaskClaiming with these decisions."""
    return Model(
        language=LOGIC,
        facts=FACTS,
        state=STATE,
        axioms={},
        initial=initial,
        actions={name: partial(action, m) for name, action in ACTIONS.items()},
        invariant=invariant,
    )


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
