"""All checks of a kafka history together, in the format of the real tool's results.edn (`:workload`).

`runs.lag` defines the worst realtime lag of a history's polls.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from typing import Any

from runs.collection import collection_paused
from runs.facts import grouped
from runs.faults import injections, members
from runs.history import NEMESIS, Keyword, Op, completions, keywords
from runs.lag import BEFORE_ALL, Expiries, Position
from workloads.interface import UNKNOWN, Case, Placement, Result
from workloads.kafka.checker import contents, nodes, order
from workloads.kafka.checker.cases import Cases, condensed
from workloads.kafka.checker.clojure import map_order
from workloads.kafka.checker.cycles import cycle_cases
from workloads.kafka.checker.logs import SeenLog, logs
from workloads.kafka.checker.observed import (
    TRANSACTIONS,
    Facts,
    Key,
    Transaction,
    client_operations,
)
from workloads.kafka.checker.unseen import unseen_error

_NS = 1e9


def known_offsets(transaction: Transaction) -> dict[Key, int]:
    """The highest offset of each key that a transaction states, unless it failed; `BEFORE_ALL` for none."""
    if transaction.type == "fail":
        return {}
    highest = {key: pairs.highest for key, pairs in transaction.polls.items()}
    for key, pairs in transaction.sends.items():
        if pairs.highest >= 0:
            highest[key] = max(pairs.highest, highest.get(key, -1))
    return highest


def lag_report(lag_ns: int, invoked_ns: int, process: Any, key: Key) -> dict[Keyword, Any]:
    """`:worst-realtime-lag` as in results.edn, in seconds."""
    return keywords(time=invoked_ns / _NS, process=process, key=key, lag=lag_ns / _NS)


NO_LAG = keywords(time=0.0, lag=0.0)  # no polls


def worst_realtime_lag(facts: Facts) -> dict[Keyword, Any]:
    """The first poll with the greatest lag: time and lag in seconds, process and key."""
    worst: tuple[int, Op, int, Key] | None = None
    for poll, invoked_ns, position in polls(facts):
        lag_ns = position.lag(invoked_ns)
        if position.places and (worst is None or lag_ns > worst[0]):
            worst = (lag_ns, poll, invoked_ns, position.worst_key())
    if worst is None:
        return dict(NO_LAG)
    lag_ns, poll, invoked_ns, key = worst
    return lag_report(lag_ns, invoked_ns, poll.process, key)


def polls(facts: Facts) -> Iterator[tuple[Op, int, Position]]:
    """Each successful poll, when it was invoked, and the position of its process after it."""
    transactions = {each.completed_at: each for each in facts.transactions}
    known = {at: known_offsets(each) for at, each in transactions.items()}
    expiries = Expiries((facts.history[at].time, offsets) for at, offsets in known.items())
    positions: dict[Any, Position] = {}
    for at, op in enumerate(facts.history):
        if op.type != "ok":
            continue
        position = positions.setdefault(op.process, Position())
        if op.f in ("assign", "subscribe"):
            keys = order.assigned_keys(op) if op.f == "assign" else ()
            position.assign(expiries.places(dict.fromkeys(keys, BEFORE_ALL)))
        elif op.f in ("poll", "txn"):
            position.advance(expiries.places(known[at]))
            invoked_at = transactions[at].invoked_at
            yield op, (op if invoked_at is None else facts.history[invoked_at]).time, position


# ---------------------------------------------------------------- the verdict


# Reported but not held against a system: logs promise no isolation between writes. [allowed-error-types]
ALLOWED = frozenset(
    (
        "int-send-skip",
        "G0",
        "G0-process",
        "G0-realtime",
        "PL-1-cycle-exists",
        "strong-PL-1-cycle-exists",
    )
)
ALLOWED_UNLESS_STRICT = frozenset(("lost-commit",))  # the real checker does not look at commits
# A message is missing, or too little happened: only a run that came to its end shows that.
AT_THE_END = frozenset(("lost-write", "unseen", "unreplicated", "empty-transaction-graph"))
# When edges between writes are asked for, cycles through them are to be expected too.
ALLOWED_WITH_WW = frozenset(
    ("G1c", "G1c-process", "G1c-realtime", "PL-2-cycle-exists", "strong-PL-2-cycle-exists")
)


@collection_paused()
def check(history: Sequence[Op], options: Mapping[str, Any]) -> Result:
    """Judge a kafka history: the `:workload` map of results.edn.

    Options, all of them optional: `ww_deps` looks for cycles through write order too; `strict` asks that every
    answer tells its offsets, that no node forgets a commit, and that every acknowledged message was polled
    through every node at the end. It needs `concurrency` and `nodes` (names), without which it raises
    `ValueError`. `valid?` is True, False, or "unknown" when nothing is wrong but the history ended before what
    `strict` asks for, or a node has no worker that could ask it. Never raises for what a history contains.
    """
    facts, place = Facts(client_operations(history)), Placement.of(options, history)
    if options.get("strict") and not place:
        raise ValueError("strict checking needs to know the nodes and the concurrency of the run")
    result = verdict(
        _errors(facts, options, history, place),
        worst_realtime_lag(facts),
        tuple(_info_causes(facts.history)),
        ALLOWED
        | (ALLOWED_WITH_WW if options.get("ww_deps") else frozenset())
        | (frozenset() if options.get("strict") else ALLOWED_UNLESS_STRICT),
    )
    valid = Keyword("valid?")
    if options.get("strict") and place and result[valid]:
        # Every node that is there at the end has a worker that was to poll everything.
        asked, there = nodes.asked_nodes(facts, place), members(place.nodes, history)
        result[valid] = True if asked.issuperset(there) else UNKNOWN
    return result


def stops_early(history: Sequence[Op]) -> str | None:
    """Why a history is not that of a whole run: operations are open, or final polls are missing; else None.

    A run without any acknowledged message needs no final polls.
    """
    if not history:
        return "Nothing was asked."
    clients = [op for op in history if op.process != NEMESIS]
    if still_open := sum(op.type == "invoke" for op in clients) - len(completions(clients)):
        return f"{still_open} operation{'s were' if still_open > 1 else ' was'} still open."
    rewound = any(
        op.extra.get(nodes.REWIND) for op in clients if op.f == "assign" and op.type == "ok"
    )
    acknowledged = any(op.type == "ok" and op.f in TRANSACTIONS for op in clients)
    return "Its final polls are missing." if acknowledged and not rewound else None


def verdict(
    errors: Mapping[str, Mapping[Keyword, Any]],
    worst_lag: Mapping[Keyword, Any],
    info_causes: tuple[Any, ...],
    allowed: Collection[str] = ALLOWED,
) -> Result:
    """The `:workload` map, from what results.edn says of each anomaly type that was found."""
    bad = sorted(errors.keys() - set(allowed))
    return {
        **keywords(
            valid=not bad,
            worst_realtime_lag=worst_lag,
            bad_error_types=tuple(map(Keyword, bad)),
            error_types=tuple(map(Keyword, sorted(errors))),
            info_txn_causes=info_causes,
        ),
        **{Keyword(anomaly): errors[anomaly] for anomaly in sorted(errors)},
    }


def error_count(anomaly: str, error: Mapping[str, Any]) -> int:
    """How many cases of `anomaly` an error in results.edn stands for."""
    return sum(error["unseen"].values()) if anomaly == "unseen" else int(error["count"])


def _errors(
    facts: Facts, options: Mapping[str, Any], history: Sequence[Op], place: Placement | None
) -> dict[str, dict[Keyword, Any]]:
    """What results.edn says of each anomaly type that was found."""
    known = logs(facts)
    found = local_cases(facts, known)
    if place and options.get("strict"):
        left = members(place.nodes, history)
        found["unreplicated"] = list(nodes.unreplicated_cases(facts, place, left))
    if place and all(each.fault != "kill" for each in injections(history)):
        found["lost-commit"] = list(nodes.lost_commit_cases(facts, place))
    if options.get("strict"):
        untold = map(contents.untold_offset_cases, facts.transactions)
        found["untold-offset"] = list(chain.from_iterable(untold))
    found |= grouped(cycle_cases(facts, known, bool(options.get("ww_deps"))))
    errors = {anomaly: condensed(anomaly, cases) for anomaly, cases in found.items() if cases}
    unseen = unseen_error(facts)
    return errors if unseen is None else {**errors, "unseen": unseen}


def local_cases(facts: Facts, known: Mapping[Key, SeenLog]) -> Cases:
    """The anomalies that one key's share of a history shows as well as the whole: all but cycles and ends."""
    each, processes = facts.transactions, _by_process(facts).values()
    failed = facts.sent("fail")
    polled = ((key, known.get(key, SeenLog()), facts) for key in facts.polled)
    named: dict[str, Iterable[Iterable[Case]]] = {
        "duplicate": starmap(contents.duplicate_cases, map_order(known)),
        "inconsistent-offsets": starmap(contents.inconsistent_offset_cases, known.items()),
        "lost-write": starmap(contents.lost_write_cases, polled),
        "no-writer-of-value": [contents.unwritten_read_cases(facts)],
        "malformed-offset": map(contents.malformed_offset_cases, each),
        "precommitted-read": map(contents.precommitted_read_cases, each),
        "G1a": (contents.aborted_read_cases(transaction, facts, failed) for transaction in each),
    }
    of_order: Sequence[tuple[Callable[..., Iterable[tuple[str, Case]]], Iterable[Any]]] = (
        (order.int_cases, each),
        (order.poll_cases, processes),
        (order.send_cases, processes),
    )
    jumps = (case for check, parts in of_order for part in parts for case in check(part, known))
    found = {anomaly: list(chain.from_iterable(cases)) for anomaly, cases in named.items()}
    return found | grouped(jumps)


def _by_process(facts: Facts) -> dict[Any, list[Op | Transaction]]:
    """The transactions and completed assignments of each process, in order."""
    transactions = {each.completed_at: each for each in facts.transactions}
    processes: dict[Any, list[Op | Transaction]] = {}
    for at, op in enumerate(facts.history):
        mine = processes.setdefault(op.process, [])
        if at in transactions:
            mine.append(transactions[at])
        elif op.type != "invoke" and op.f in ("assign", "subscribe"):
            mine.append(op)
    return processes


def _info_causes(history: Sequence[Op]) -> Iterator[Any]:
    """With which errors transactions became indefinite, each once."""
    seen = []
    for op in history:
        if op.type == "info" and op.f in TRANSACTIONS and op.extra.get("error") not in seen:
            seen.append(op.extra.get("error"))
            yield op.extra.get("error")
