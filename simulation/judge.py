"""Runs a scenario and says what was wrong with it, by name."""

import re
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from bench.loop import Deadlock
from bench.system import handled
from leaderless.core.coordination import InvariantBroken
from runs.collection import collected_quietly
from runs.history import Op
from simulation.bucket_world import world_of
from simulation.hosts import MakeNode
from simulation.nodes import StrategyMaker
from simulation.oracle import Violation
from simulation.scenario import Scenario
from simulation.world import World
from workloads import kafka
from workloads.interface import Judge

INVARIANT = re.compile(r"\b([A-Z][a-z]+[A-Z]\w+): ")
DROPPING = ("_weakrefset", "weakref")  # what their callbacks raise, Python drops
AGAIN_S = 0.1  # of CPU, until the code that does not end may be interrupted
CPU_S_MAX = 60.0  # of one run: no virtual clock ends a loop in which no time passes
# What the checker says of a run too short for a single send, which a simulation may be; and of commits, which
# the oracle judges by what the log promises.
HARMLESS = frozenset(("empty-transaction-graph", "lost-commit"))


@dataclass(frozen=True, slots=True)
class Failure:
    """`name`: an invariant, an anomaly type of the checker, `crash` or `aborted`; `text`: what was seen."""

    name: str
    text: str


@dataclass(slots=True)
class Report:
    """What a simulated run showed.

    `acts` and `fault_acts`: how many operations of the main phase and acts of faults were drawn, which `omit`
    and `omit_faults` of the scenario number; `message_id`: the message in whose step the run ended, when it
    `ended_early`; `requests`: to a bucket, by kind; `covered`: what happened to a log as a table.
    """

    scenario: Any
    failures: list[Failure]
    digest: str
    virtual_s: float
    cpu_s: float
    operations: int
    acts: int
    fault_acts: int
    history: list[Op] = field(default_factory=list)
    message_id: int | None = None
    ended_early: bool = False
    requests: dict[str, int] = field(default_factory=dict)
    covered: dict[str, int] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of what is wrong, the first first."""
        return [failure.name for failure in self.failures]


class Stuck(KeyboardInterrupt):
    """A step does not end. It is no `Exception`, which the code that loops might catch.

    asyncio lets it through, and makes no group of it.
    """


def simulate(
    scenario: Scenario,
    make: StrategyMaker | None = None,
    *,
    node: MakeNode | None = None,
    cpu_s_max: float = CPU_S_MAX,
) -> Report:
    """Run a scenario and judge it; never raises for what a node does."""
    began_s = time.process_time()
    with collected_quietly():
        return judged(world_of(scenario, make, node=node), began_s, cpu_s_max)


def judged(world: World, began_s: float | None = None, cpu_s_max: float = CPU_S_MAX) -> Report:
    """Execute a world, for at most so many seconds of CPU, and judge it."""
    began_s = time.process_time() if began_s is None else began_s
    failures = [*ended_by(world.execute, cpu_s_max)]
    ended_early = bool(failures)
    # Before the final polls, that something is missing is no anomaly.
    unsettled = world.workload.judge.at_end if ended_early else frozenset()
    judge, result = world.workload.judge, world.check()
    failures += anomalies(world.judged, HARMLESS | unsettled, judge, result)
    return Report(
        scenario=world.scenario,
        failures=failures,
        digest=world.digest,
        virtual_s=world.virtual_s,
        cpu_s=time.process_time() - began_s,
        operations=world.recorder.operation_count,
        acts=world.acts.count,
        fault_acts=world.fault_acts.count,
        history=world.recorder.ops,
        message_id=world.watch.message_id if ended_early else None,
        ended_early=ended_early,
        **world.counted(),
    )


def named(text: str) -> Failure:
    """The failure that a text of the node's log tells: the name of the invariant is a word of it."""
    found = INVARIANT.search(text)
    return Failure(found[1], text[found.end() :]) if found else Failure("InvariantBroken", text)


def ended_by(execute: Callable[[], Any], cpu_s_max: float = CPU_S_MAX) -> Iterator[Failure]:
    """Run something for at most so many seconds of CPU; what ended it before its time, by name."""
    try:
        with cpu_limited(cpu_s_max):
            outcome = execute()
        if outcome is not None and outcome.failure:
            yield Failure("aborted", str(outcome.failure))
    except (Stuck, Exception) as error:
        yield failure_of(error)


def failure_of(error: BaseException) -> Failure:
    """What an error that ends a run shows; one that follows from the end of the time is that end."""
    before: BaseException | None = error
    while before and not isinstance(before, Stuck):
        before = before.__context__
    match before or error:
        case Violation(name=name):
            return Failure(name, str(error).partition(": ")[2])
        case InvariantBroken():
            return named(str(error))
        case Stuck() | Deadlock() as end:
            return Failure("Progress", f"the run does not end: {end}")
    told = "".join(traceback.format_exception(error, limit=-6))
    return Failure("crash", f"{error!r}\n{told}")


def anomalies(
    history: Sequence[Op],
    harmless: frozenset[str] = HARMLESS,
    judge: Judge | None = None,
    result: dict[Any, Any] | None = None,
) -> Iterator[Failure]:
    """What a workload's checker holds against a history: that of kafka, if no other is named."""
    judge = judge or kafka.JUDGE
    result = judge.check(history, {}) if result is None else result
    if harmless.issuperset(map(str, result["bad-error-types"])):
        return
    for finding in judge.explain(result, history):
        if finding.invalidating and finding.type not in harmless:
            yield Failure(finding.type, finding.sentence)


@contextmanager
def cpu_limited(limit_s: float) -> Iterator[None]:
    """Raise `Stuck` inside the block after so many seconds of CPU; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, frame: FrameType | None) -> None:
        if frame and frame.f_globals.get("__name__") in DROPPING:
            return
        # What was to be a task may never become one. It is collected at any time, so this stays.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited")
        raise Stuck(f"no end after {limit_s:g} s of CPU")

    with handled(signal.SIGVTALRM, stop):
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s, AGAIN_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
