"""The key figures of one run: one number each, to compare runs and cells of sweeps by.

Only `of_run` reads files.

Latency and throughput are of the main phase: of what was invoked before the time limit (and, for throughput,
completed). They count sends and polls; in a run without any, which is of another workload, all operations.
Messages, CPU, verdicts, fractions are of the whole run with its final polls, as in the real tool.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from runs.facts import Results, read_options, words
from runs.faults import MUTE, injections
from runs.files import OPTIONS
from runs.history import NEMESIS, Op, find_history, read_history
from runs.operations import operations, quantile

Figures = dict[str, float | None]
JUDGED = ("send", "poll")
BEYOND_THE_REAL_TOOL = {"unreplicated", "untold-offset"}  # what only --strict asks for


def of_run(run_dir: Path, *, time_limit_s: float, strict: bool) -> tuple[Figures, list[str]]:
    """The figures of the run in `run_dir`, and the types of anomaly that made it invalid.

    Raises `OSError` or `ValueError` when it left none.
    """
    results = Results.of_run(run_dir)
    test = run_dir / OPTIONS
    node_cpu_s = read_options(test.read_bytes()).get("node_cpu_s", {}) if test.exists() else {}
    history = read_history(find_history(run_dir))
    figures = {
        **of_operations(history, time_limit_s),
        **_of_results(results, kinds(history), strict=strict),
        **_of_cpu(history, node_cpu_s),
        "longest_key_messages": _longest_key(history),
        "mute_nodes": _mute_nodes(history),
    }
    return figures, list(
        results.bad_error_types or words(results.workload.get("anomaly-types")) or ()
    )


def kinds(history: Sequence[Op]) -> tuple[str, ...]:
    """The kinds of operations that are measured: sends and polls, or those of another workload."""
    found = dict.fromkeys(op.f for op in history if op.process != NEMESIS)
    return tuple(map(str, found)) if found and found.keys().isdisjoint(JUDGED) else JUDGED


def latencies_ms(history: Sequence[Op], limit_s: float) -> tuple[dict[str, list[float]], int]:
    """Of the operations of `kinds` that were invoked within the limit and succeeded: their latencies.

    Returns:
        the latencies by `f`, ascending, and how many were also completed within the limit.
    """
    latency_ms: dict[str, list[float]] = {f: [] for f in kinds(history)}
    done = 0
    for each in operations(history):
        asked = each.f in latency_ms and each.invoked.time <= limit_s * 1e9
        if asked and each.outcome == "ok":
            latency_ms[each.f].append(each.latency_ns / 1e6)
            done += each.last.time <= limit_s * 1e9
    return {f: sorted(measured) for f, measured in latency_ms.items()}, done


def of_operations(history: Sequence[Op], limit_s: float) -> Figures:
    latency_ms, done = latencies_ms(history, limit_s)
    figures: Figures = {"throughput_ops_per_s": done / limit_s}
    for f in JUDGED:
        measured = latency_ms.get(f, [])
        figures |= {f"{f}_p50_ms": quantile(measured, 0.5), f"{f}_p99_ms": quantile(measured, 0.99)}
    return figures


def _of_results(results: Results, measured: Sequence[str], *, strict: bool) -> Figures:
    content, net, workload = results.content, results.net, results.workload
    by_f = content["stats"]["by-f"]
    bad = results.bad_error_types  # only kafka has them
    is_right = workload["valid?"] is True if bad is None else not set(bad) - BEYOND_THE_REAL_TOOL
    finished = "error" not in content
    lag = workload.get("worst-realtime-lag") or {}
    latencies = workload.get("stable-latencies") or {}
    stable = {float(share): latency_ms for share, latency_ms in latencies.items()}
    return {
        "store_requests_per_op": results.store.get("requests-per-op"),
        "server_messages_per_op": net["servers"].get("msgs-per-op"),
        "all_messages_per_op": net["all"].get("msgs-per-op"),
        "worst_lag_s": lag.get("lag"),
        "stable_median_ms": stable.get(0.5),
        "stable_most_ms": stable.get(1.0),
        "ok_fraction": _ok_fraction(by_f.get(f, {}) for f in measured),
        "ok_fraction_of_all": content["availability"]["ok-fraction"],
        "valid": float(finished and is_right),
        "strict_valid": float(finished and workload["valid?"] is True) if strict else None,
    }


def _ok_fraction(outcomes: Iterable[Mapping[str, int]]) -> float | None:
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(count=outcome.get("count", 0), ok=outcome.get("ok-count", 0))
    return total["ok"] / total["count"] if total["count"] else None


def _of_cpu(history: Sequence[Op], node_cpu_s: Mapping[str, float]) -> Figures:
    """CPU of all nodes together, for each operation of `kinds` that was invoked (final ones included)."""
    measured = set(kinds(history))
    count = sum(op.type == "invoke" and op.f in measured for op in history)
    used_s = sum(node_cpu_s.values())
    return {"node_cpu_us_per_op": used_s / count * 1e6 if count and node_cpu_s else None}


def _longest_key(history: Sequence[Op]) -> float:
    """How many messages the key with most of them got: a short run never comes near a large limit."""
    sent = Counter(op.value[0][1] for op in history if op.type == "ok" and op.f == "send")
    return float(max(sent.values(), default=0))


def _mute_nodes(history: Sequence[Op]) -> float:
    """How many nodes went mute, each counted once."""
    return float(len({each.effect["node"] for each in injections(history) if each.fault == MUTE}))
