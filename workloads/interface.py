"""The seam between the bench and a workload: the names that a module in `workloads/` defines.

A workload is four things beside its prose specification (the docstring of its module): a
*generator* that says what clients ask for, a *final generator* for after all faults are healed, a
*client* that turns one operation into RPCs, and a *judge* that turns the history into a verdict.
All are pure: time, randomness and the network are handed in, so the same workload runs on real
processes and on a virtual clock.

The module of a workload has two names (`Module`): `build(setting)` makes the workload for a run,
and `JUDGE` is what judges a history, for which no run is needed.

Workers are numbered 0..concurrency-1 and do one operation at a time; worker i talks to node i mod
n. A worker's process number starts as its own number and grows by the concurrency whenever an
operation ends `info`, so `op.process % concurrency` is always the worker.

An example, whole:

    class EchoClient:
        def __init__(self, node: str) -> None:
            self.node = node

        def invoke(self, op: Op) -> Steps:
            reply = yield Rpc(self.node, {"type": "echo", "echo": op.value})
            return op.value if reply["echo"] == op.value else reply["echo"]
"""

import json
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple, Protocol

from runs.history import Keyword, Op

CLIENT_TIMEOUT_MS = 5000
_WIDTH = 60  # of a value in a report

Body = dict[str, Any]


@dataclass(slots=True)
class Rpc:
    """One request of a client. The client yields it to the bench and resumes with the body of the reply.

    An error reply raises `RpcError` inside the client, silence for `timeout_ms` raises
    `RpcTimeout`. The bench adds `msg_id`.
    """

    dest: str
    body: Body
    timeout_ms: int = CLIENT_TIMEOUT_MS


class RpcError(Exception):
    """The node answered with `{"type": "error"}`. `definite`: the operation certainly did not happen."""

    def __init__(self, code: int, name: str, text: str | None, definite: bool) -> None:
        super().__init__(f"error {code} ({name}): {text}")
        self.code, self.name, self.text, self.definite = code, name, text, definite

    def unknown(self) -> "RpcError":
        """The same error, which does not say that the operation certainly did not happen."""
        return RpcError(self.code, self.name, self.text, definite=False)


# Maelstrom's error codes: code -> (name, definite). Others are indefinite; those from 1000 on are free.
ERRORS = {
    0: ("timeout", False),
    1: ("node-not-found", True),
    10: ("not-supported", True),
    11: ("temporarily-unavailable", True),
    12: ("malformed-request", True),
    13: ("crash", False),
    14: ("abort", True),
    20: ("key-does-not-exist", True),
    21: ("key-already-exists", True),
    22: ("precondition-failed", True),
    30: ("txn-conflict", True),
}


UNKNOWN_ERROR = "unknown"  # the name of all other errors


def error_of(body: Body) -> RpcError:
    """The exception that stands for an error reply; its code is -1 when the reply has no integer."""
    given = body.get("code")
    code = given if type(given) is int else -1
    name, definite = ERRORS.get(code, (UNKNOWN_ERROR, False))
    return RpcError(code, name, body.get("text"), definite)


class RpcTimeout(Exception):
    """No reply in time: the outcome of the operation is unknown."""


def shown(value: Any) -> str:
    """The JSON of a value, for a report: a long one is cut."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


class MalformedReply(Exception):
    """The node's reply breaks the protocol. Raised by a client; it aborts the run with a report.

    `expected` shows the form a right reply has, `why` says in a sentence what is wrong with this one.
    """

    def __init__(self, request: Body, reply: Body, expected: str, why: str) -> None:
        super().__init__(why)
        self.request, self.reply, self.expected, self.why = request, reply, expected, why


class CrashClient(Exception):
    """Raised by a client to end its operation `info` without an error, as a crash does."""


# What `Client.invoke` returns: a generator of requests, whose return value is the completed `value`.
Steps = Generator[Rpc, Body, Any]


class Client(Protocol):
    """A client of one node; a fresh one is opened for each process number (unless `Workload.reusable`)."""

    def invoke(self, op: Op, /) -> Steps:
        """Perform the operation. Return its completed value (op type `ok`). What is added to `op.extra` stands
        in the history, too.

        A definite `RpcError` that is not caught makes it `fail`, an indefinite one or a timeout
        `info` (`fail` where `op.f` is in `Workload.idempotent`).
        """


@dataclass(slots=True)
class Draft:
    """An operation to be invoked: an `Op` before it has an index, a time and a process."""

    f: str
    value: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Wait:
    """Nothing for this worker before `until_ns` (time of the history)."""

    until_ns: int


class Turn(NamedTuple):
    """A worker is free at this time of the history."""

    worker: int
    now_ns: int


class OpGenerator(Protocol):
    """Choose the next operation of a free worker, and learn from completions."""

    def next(self, turn: Turn, /) -> Draft | Wait | None:
        """The next operation for this worker; `None` when there is none any more in this phase.

        In the main phase the bench paces the calls (`--rate`), so a plain `Draft` each time is
        right there. In the final phase a worker is asked as soon as it is free.
        """

    def update(self, op: Op) -> None:  # noqa: ARG002 - by default it learns nothing
        """An operation of a client was completed (`ok`, `fail` or `info`)."""
        return


@dataclass(frozen=True, slots=True)
class Finding:
    """One type of anomaly in a history.

    `count` says how often it was found, `sentence` describes one instance, and `witness` is the
    smallest set of operations that shows that instance, their values reduced to what matters.
    Where the witness shows only an effect, any of `causes` may be what went wrong. `circumstances` tells of
    the faults at the time of the causes, or else of the witness (`bench.verdict.circumstances`). `at_end`:
    something is missing up to the end of the run, so only a finished run proves it (`Judge.at_end`).
    `undecided`: because of it nobody can tell whether the history is valid.
    """

    type: str
    invalidating: bool
    count: int
    sentence: str
    witness: Sequence[Op] = field(default=())
    circumstances: str = ""
    at_end: bool = False
    undecided: bool = False
    causes: Sequence[Op] = field(default=())

    @property
    def unsettled(self) -> bool:
        """Whether the run stopped before it could show that this is an anomaly."""
        return self.at_end and not self.invalidating


LEFT_OUT = (
    "left-out"  # of an operation of a witness: how many values it had besides those that are shown
)


def without(op: Op, count: int) -> Op:
    """The operation, with a note that so many of its values are left out."""
    return replace(op, extra={**op.extra, LEFT_OUT: count}) if count else op


NODE = "node"  # of an operation: the node that it talks to, where its worker's first one has left


@dataclass(frozen=True, slots=True)
class Placement:
    """Which node a process talks to: worker i talks to node i mod n, process p is worker p mod concurrency.

    `nodes` are those at the start. `moved` has the processes whose worker has gone on with another node.
    """

    nodes: Sequence[str]
    concurrency: int
    moved: Mapping[Any, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, Any], history: Sequence[Op]) -> "Placement | None":
        """The placement that `options` (as in test.json) and a history describe; None when they do not."""
        nodes, concurrency = options.get("nodes"), options.get("concurrency")
        if not nodes or not isinstance(nodes, list | tuple) or not isinstance(concurrency, int):
            return None
        moved = {op.process: op.extra[NODE] for op in history if NODE in op.extra}
        return cls(nodes, concurrency, moved) if concurrency > 0 else None

    def node(self, process: int) -> str:
        """The node that `process` talks to."""
        return self.moved.get(process, self.nodes[process % self.concurrency % len(self.nodes)])

    def name_nodes(self, sentence: str) -> str:
        """The sentence with the node of each process in it: `process 3` becomes `process 3 (n1)`."""
        return _PROCESS.sub(lambda found: f"{found[0]} ({self.node(int(found[1]))})", sentence)


_PROCESS = re.compile(r"\b[Pp]rocess (\d+)")


# (history, options) -> the workload's map in results.edn, with `valid?` True, False or "unknown".
Result = dict[Any, Any]  # of a checker, as it stands in results.edn: its keys are keywords
Case = dict[Any, Any]  # one instance of an anomaly; its operations are `Op`s until it is shown
Checker = Callable[[Sequence[Op], Mapping[str, Any]], Result]


def by_history(check: Callable[[Sequence[Op]], Result]) -> Checker:
    """The checker of a workload whose verdict depends on no option."""
    return lambda history, _options: check(history)


UNKNOWN = Keyword("unknown")


def worst(verdicts: Collection[Any]) -> Any:
    """Invalid when any verdict is, else unknown when any is, else valid."""
    return next((each for each in (False, UNKNOWN) if each in verdicts), True)


def never_early(history: Sequence[Op]) -> None:
    """For workloads without a final phase: a history alone does not show that the run stopped early."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What judges a history: the checker, its anomalies in sentences, and its figures in one line.

    `figures` takes the checker's result; workloads have it whose results hold more than a verdict. `at_end`
    has the types of anomaly that only the end of a run proves, because something is missing. `stops_early`
    says why a history cannot be that of a finished run; None where nothing speaks against it.
    """

    check: Checker
    explain: Callable[[Mapping[Any, Any], Sequence[Op]], list[Finding]]
    figures: Callable[[Mapping[Any, Any]], str] | None = None
    at_end: frozenset[str] = frozenset()
    stops_early: Callable[[Sequence[Op]], str | None] = never_early

    def findings(
        self,
        result: Mapping[Any, Any],
        history: Sequence[Op],
        place: Placement | None = None,
        *,
        finished: bool = True,
    ) -> list[Finding]:
        """The anomalies in `result`. Without a finished run, none is held against it that is `at_end`.

        `place` names the node of each process, where it is known.
        """
        return [
            replace(
                each,
                sentence=place.name_nodes(each.sentence) if place else each.sentence,
                invalidating=each.invalidating and (finished or each.type not in self.at_end),
                at_end=each.type in self.at_end,
            )
            for each in self.explain(result, history)
        ]

    def so_far(self, result: Mapping[Any, Any], history: Sequence[Op]) -> dict[Any, Any]:
        """The checker's result, read as that of a run that stopped before its end.

        Anomalies `at_end` may still turn out to be none: they stay among the `error-types`, but are not held
        against the run. Other anomalies are certain. Without one the run is unknown, if only the end of a run
        proves anything in this workload.
        """
        if "bad-error-types" in result:
            return so_far(result, self.at_end)
        told = self.findings(result, history, finished=False)
        is_wrong = result["valid?"] is False and not any(each.unsettled for each in told)
        is_certain = is_wrong or any(each.invalidating for each in told) or not self.at_end
        return dict(result) if is_certain else {**result, Keyword("valid?"): UNKNOWN}


def so_far(result: Mapping[Any, Any], at_end: Collection[str]) -> dict[Any, Any]:
    """Read a result that names its types of anomaly as that of a run that stopped early (`Judge.so_far`)."""
    bad = tuple(each for each in result["bad-error-types"] if each not in at_end)
    settled = {Keyword("valid?"): False if bad else UNKNOWN, Keyword("bad-error-types"): bad}
    return {**result, **settled}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a workload is built from: nodes, options (as in test.json) and named streams of randomness.

    `random("kafka")` is a stream that depends on the run's seed and the name only, so that a new
    draw in one place does not shift the draws in another.
    """

    nodes: Sequence[str]
    concurrency: int
    options: Mapping[str, Any]
    random: Callable[[str], Random]


@dataclass(frozen=True, slots=True)
class Workload:
    """What `build(setting)` of a workload's module returns.

    `reusable`: the client survives an operation that ended `info`. `final_generator` runs after
    the faults are healed and the recovery time is over, for at most `final_limit_s` seconds.
    `set_up(nodes, node)` makes a client that says something to the node before the main phase, or when it
    joins; the bench gives it one operation, `set-up`, which is in no history. The run fails if that does not
    succeed before the main phase.
    """

    generator: OpGenerator
    open_client: Callable[[str], Client]
    judge: Judge
    set_up: Callable[[Sequence[str], str], Client] | None = None
    final_generator: OpGenerator | None = None
    final_limit_s: float = 10.0
    idempotent: frozenset[str] = frozenset()
    reusable: bool = False


class Module(Protocol):
    """What the module of a workload defines. `JUDGE` judges any history of it."""

    JUDGE: Judge

    def build(self, setting: Setting) -> Workload:
        """The workload, ready for one run."""
