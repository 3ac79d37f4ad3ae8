"""What the checks of a run found, as records; the `edn` of each is its map in results.edn."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.net import Traffic
from runs.facts import NEVER_OK
from runs.faults import Injection
from runs.history import Op
from runs.keyword import Keyword, keywords
from workloads.interface import UNKNOWN, Result, worst

Valid = bool | Keyword  # true, false, or `UNKNOWN`


class Counts(NamedTuple):
    """How operations ended."""

    ok: int = 0
    fail: int = 0
    info: int = 0

    @property
    def all(self) -> int:
        return sum(self)

    def edn(self) -> Result:
        return keywords(
            valid=self.ok > 0,
            count=self.all,
            ok_count=self.ok,
            fail_count=self.fail,
            info_count=self.info,
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """Outcomes by `f`; `reasons` says of each `f` that never succeeded why.

    Invalid when some `f` never succeeded, or unknown when the run `stopped` before its end.
    """

    by_f: Mapping[str, Counts]
    reasons: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False

    @property
    def counts(self) -> Counts:
        """Of all operations."""
        return Counts(*map(sum, zip(*self.by_f.values(), strict=True)))

    @property
    def never(self) -> list[str]:
        """Each `f` that should have succeeded and never did."""
        return [f for f, counts in self.by_f.items() if f not in NEVER_OK and not counts.ok]

    @property
    def valid(self) -> Valid:
        return _settled(not self.never, self.stopped)

    def edn(self) -> Result:
        by_f = {Keyword(f): counts.edn() for f, counts in self.by_f.items()}
        told = {Keyword(f): reason for f, reason in self.reasons.items()}
        described = self.counts.edn() | keywords(valid=self.valid, by_f=by_f)
        return described | keywords(reasons=told) if told else described


@dataclass(frozen=True, slots=True)
class Availability:
    """The fraction of invocations that succeeded, and the least that was asked for."""

    ok_fraction: float
    bound: float
    stopped: bool = False

    @property
    def valid(self) -> Valid:
        return _settled(self.ok_fraction >= self.bound, self.stopped)

    def edn(self) -> Result:
        return keywords(valid=self.valid, ok_fraction=self.ok_fraction)


def _settled(valid: bool, stopped: bool) -> Valid:
    """How much succeeded is open until the run has come to its end."""
    return UNKNOWN if stopped and not valid else valid


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Operations during which a client itself broke, by the kind of exception. They make nothing invalid."""

    by_kind: Mapping[str, Sequence[Op]]
    valid: Valid = True

    def edn(self) -> Result:
        found = [
            keywords(count=len(ops), **{"class": kind}, example=ops[0])
            for kind, ops in self.by_kind.items()
        ]
        return keywords(valid=True, exceptions=found) if found else keywords(valid=True)


@dataclass(frozen=True, slots=True)
class Answers:
    """How many answers of each node were to requests that had been answered before; `--strict` refuses them."""

    repeated: Mapping[str, int] = field(default_factory=dict)
    refused: bool = False

    @property
    def valid(self) -> Valid:
        return not (self.repeated and self.refused)

    def edn(self) -> Result:
        return keywords(valid=self.valid, repeated=dict(self.repeated))

    def sentences(self) -> Iterator[str]:
        for node, count in sorted(self.repeated.items()):
            yield f"{node} sent {count} answers to requests that had been answered before."


@dataclass(frozen=True, slots=True)
class NetStatistics:
    """Messages with a client at either end, and others; `operations`: the invocations by clients."""

    clients: Traffic
    servers: Traffic
    operations: int
    valid: Valid = True

    @property
    def servers_per_op(self) -> float:
        """Messages between servers for each operation; 0 without operations."""
        return single(self.servers.sent / self.operations) if self.operations else 0.0

    def edn(self) -> Result:
        clients, servers = self.clients, self.servers
        both = Traffic(clients.sent + servers.sent, clients.received + servers.received)
        return keywords(
            all=_counted(both) | self._per_op(both),
            clients=_counted(clients),
            servers=_counted(servers) | self._per_op(servers),
            valid=True,
        )

    def _per_op(self, traffic: Traffic) -> Result:
        """As the real tool has it: nothing where there were no operations."""
        return (
            keywords(msgs_per_op=single(traffic.sent / self.operations)) if self.operations else {}
        )


def _counted(traffic: Traffic) -> Result:
    return keywords(send_count=traffic.sent, recv_count=traffic.received, msg_count=traffic.sent)


@dataclass(frozen=True, slots=True)
class Broken:
    """A check that broke: what it raised."""

    error: str
    valid: Valid = UNKNOWN

    def edn(self) -> Result:
        return keywords(valid=self.valid, error=self.error)


Check = Exceptions | Stats | Availability | Answers | NetStatistics | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """All that was found in a run.

    `workload` is the result of the workload's own checker, or of a `Broken` one. `error`: why the run could not
    be finished. `store` is what a real store says about the run.
    """

    exceptions: Exceptions | Broken
    stats: Stats | Broken
    availability: Availability | Broken
    net: NetStatistics | Broken
    workload: Result
    faults: Sequence[Injection] = ()
    dropped_lines: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    store: Result | None = None
    answers: Answers = Answers()

    @property
    def valid(self) -> Valid:
        """The worst of all verdicts; never true of a run that could not be finished."""
        whole = True if self.error is None else UNKNOWN
        own = (each.valid for each in self.own.values())
        found: Valid = worst([*own, self.workload["valid?"], whole])
        return found

    @property
    def own(self) -> dict[str, Check]:
        """The checks by name, all but the workload's; `answers`, which the real tool lacks, if it found any."""
        checks: dict[str, Check] = {
            "exceptions": self.exceptions,
            "stats": self.stats,
            "availability": self.availability,
            "net": self.net,
        }
        return checks | {"answers": self.answers} if self.answers.repeated else checks

    @property
    def never(self) -> list[str]:
        """Each `f` that should have succeeded and never did, as far as it could be counted."""
        return self.stats.never if isinstance(self.stats, Stats) else []

    def edn(self) -> Result:
        """The content of results.edn. `perf` and `timeline` judge nothing, there as here."""
        valid = keywords(valid=True)
        graphs = keywords(latency_graph=dict(valid), rate_graph=dict(valid), valid=True)
        checked = keywords(
            perf=graphs,
            timeline=dict(valid),
            **{name: check.edn() for name, check in self.own.items()},
            workload=self.workload,
            valid=self.valid,
        )
        return checked | dict(self._beside())

    def _beside(self) -> Iterator[tuple[Keyword, object]]:
        """What stands beside the checks, each where there is any."""
        if self.faults:
            yield Keyword("faults"), [_injected(each) for each in self.faults]
        if self.dropped_lines:
            yield Keyword("dropped-lines"), dict(self.dropped_lines)
        if self.error is not None:
            yield Keyword("error"), self.error
        if self.store is not None:
            yield Keyword("store"), self.store


def _injected(injection: Injection) -> Result:
    """A fault, which the real tool's results do not have; times in ns of the history."""
    return keywords(
        fault=Keyword(injection.fault),
        start_time=injection.start_ns,
        end_time=injection.end_ns,
        text=injection.text,
    )


def single(number: float) -> float:
    """The number in single precision, with no more digits than that has: as the real tool prints it."""
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    for digits in range(1, 10):
        short = float(f"{rounded:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", rounded):
            return short
    return float(rounded)
