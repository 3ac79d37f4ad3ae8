"""Task claiming: tasks one after the other, each done by one worker at a time, also when workers crash.

    REGISTER   {epoch, owner, beat, task, failures, dead}      a lease (`lease`) with these notes

A worker claims the current task by taking the lease, works, and releases it: done, which makes the next task
current, or failed. Taking over from a worker that crashed counts as a failure too. After
`Pace.failures_max` of them in a row the task is *dead*: no worker tries it again until an operator revives it.

An operator who has removed the cause, or a worker after a long pause (`revive`), writes the register anew,
with the same `epoch` and `task`: `owner` null, `failures` 0, `dead` false. It must keep `epoch`, or workers of
old epochs count again.
"""

from reprlib import repr as brief
from typing import Any

from leaderless.core.coordination import Misfit, count_of, replace
from leaderless.core.lease import Lease, State, lease_of
from leaderless.core.pace import Pace
from leaderless.core.process import Process
from leaderless.core.strategy import Clock

FIRST_TASK = {"task": 0, "failures": 0, "dead": False}


def claim_of(value: object) -> State:
    """What the register holds, as it is. Raises `Misfit`."""
    state = lease_of(value)
    count_of(state.get("task"))
    count_of(state.get("failures"))
    if isinstance(state.get("dead"), bool):
        return state
    raise Misfit(f"no claim: {brief(value)}")


class Claims:
    """Claims of one worker on the tasks of one register; `worker` is unique to this start of the
    node; `pace` says how long a lease is, and after how many failures a task is dead.
    """

    def __init__(self, clock: Clock, register: str, worker: str, pace: Pace) -> None:
        self._register = register
        self._failures_max = pace.failures_max
        self._lease = Lease(clock, register, worker, pace.lease_s, claim_of)
        self.dead = False  # whether the last `claim` found the task dead

    @property
    def epoch(self) -> int:
        """The epoch of the claim that is held."""
        epoch: int = self._lease.held["epoch"]
        return epoch

    def claim(self) -> Process[int | None]:
        """Claim the current task; returns its number, None when a live worker has it or it is dead."""
        state = FIRST_TASK | (yield from self._lease.seek())
        self.dead = bool(state["dead"])
        crashed = state["owner"] is not None
        notes = self._failed(state) if crashed else {}
        if state["dead"] or not (yield from self._lease.take(state, **notes)):
            return None
        if self._lease.held["dead"]:  # the crash was one too many
            self.dead = True
            yield from self._lease.release()
            return None
        task: int = state["task"]
        return task

    def revive(self) -> Process[None]:
        """Let a dead task be tried again. One that is not dead, or that somebody has moved, is left alone."""
        state = FIRST_TASK | (yield from self._lease.seek())
        if state["dead"]:
            alive = state | {"owner": None, "failures": 0, "dead": False}
            yield from replace(self._register, state, alive)

    def beat(self) -> Process[None]:
        """Show that the worker is alive. Raises `LeaseLost` when it was taken for dead."""
        return self._lease.beat()

    def release(self, done: bool) -> Process[None]:
        """Give the task back, `done` or failed; a claim that was lost meanwhile is left alone."""
        state = self._lease.held
        notes = {"task": state["task"] + 1, "failures": 0} if done else self._failed(state)
        return self._lease.release(**notes)

    def _failed(self, state: dict[str, Any]) -> dict[str, Any]:
        failures = state["failures"] + 1
        return {"failures": failures, "dead": failures >= self._failures_max}
