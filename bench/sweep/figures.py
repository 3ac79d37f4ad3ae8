"""The key figures of one run, from the files of the bench or the real tool. Only `of_run` reads
files.

Latency and throughput are of the main phase: of what was invoked before the time limit (and, for throughput,
completed). Messages, CPU, verdicts, fractions are of the whole run with its final polls, as in the real tool.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs import edn
from runs.history import Op, completions, find_history, read_history

Figures = dict[str, float | None]
JUDGED = ("send", "poll")
BEYOND_THE_REAL_TOOL = {"unreplicated"}  # what only --strict asks for


def of_run(run_dir: Path, *, time_limit_s: float, strict: bool) -> tuple[Figures, list[str]]:
    """The figures of the run in `run_dir`, and the types of anomaly that made it invalid.

    Raises `OSError` or `ValueError` when it left none.
    """
    results = _results(run_dir)
    test = run_dir / "test.json"
    node_cpu_s = json.loads(test.read_text()).get("node_cpu_s", {}) if test.exists() else {}
    history = read_history(find_history(run_dir))
    figures = {
        **_of_operations(history, time_limit_s),
        **_of_results(results, strict=strict),
        **_of_cpu(history, node_cpu_s),
        "longest_key_messages": _longest_key(history),
    }
    return figures, [str(each) for each in _bad(results)]


def _results(run_dir: Path) -> Mapping[str, Any]:
    """What the checkers said: ours as JSON, the real tool's as EDN."""
    ours = run_dir / "results.json"
    if ours.exists():
        found: Mapping[str, Any] = json.loads(ours.read_text())
    else:
        found = edn.loads((run_dir / "results.edn").read_text())
    return found


def _bad(results: Mapping[str, Any]) -> Sequence[str]:
    return results["workload"].get("bad-error-types") or ()


def quantile(ordered: Sequence[float], q: float) -> float | None:
    """The smallest value that at least the fraction `q` does not exceed: always one that was seen."""
    if not ordered:
        return None
    return ordered[max(0, -int(-q * len(ordered) // 1) - 1)]


def latencies_ms(history: Sequence[Op], limit_s: float) -> tuple[dict[str, list[float]], int]:
    """In ascending order, by `f`, of what was asked within the limit and succeeded; how much did within it."""
    latency_ms: dict[str, list[float]] = {f: [] for f in JUDGED}
    done = 0
    for invoked, completed in completions(history).items():
        start, end = history[invoked], history[completed]
        if start.f in JUDGED and end.type == "ok" and start.time <= limit_s * 1e9:
            latency_ms[start.f].append((end.time - start.time) / 1e6)
            done += end.time <= limit_s * 1e9
    return {f: sorted(measured) for f, measured in latency_ms.items()}, done


def _of_operations(history: Sequence[Op], limit_s: float) -> Figures:
    latency_ms, done = latencies_ms(history, limit_s)
    figures: Figures = {"throughput_ops_per_s": done / limit_s}
    for f, measured in latency_ms.items():
        figures |= {f"{f}_p50_ms": quantile(measured, 0.5), f"{f}_p99_ms": quantile(measured, 0.99)}
    return figures


def _of_results(results: Mapping[str, Any], *, strict: bool) -> Figures:
    net, workload, by_f = results["net"], results["workload"], results["stats"]["by-f"]
    bad = set(_bad(results))
    finished = "error" not in results
    lag = workload.get("worst-realtime-lag") or {}
    return {
        "server_messages_per_op": net["servers"].get("msgs-per-op"),
        "all_messages_per_op": net["all"].get("msgs-per-op"),
        "worst_lag_s": lag.get("lag"),
        "ok_fraction": _ok_fraction(by_f.get(f, {}) for f in JUDGED),
        "ok_fraction_of_all": results["availability"]["ok-fraction"],
        "valid": float(finished and not bad - BEYOND_THE_REAL_TOOL),
        "strict_valid": float(finished and workload["valid?"] is True) if strict else None,
    }


def _ok_fraction(outcomes: Iterable[Mapping[str, int]]) -> float | None:
    total: Counter[str] = Counter()
    for outcome in outcomes:
        total.update(count=outcome.get("count", 0), ok=outcome.get("ok-count", 0))
    return total["ok"] / total["count"] if total["count"] else None


def _of_cpu(history: Sequence[Op], node_cpu_s: Mapping[str, float]) -> Figures:
    """CPU of all nodes together, for each send or poll that was invoked (final ones included)."""
    count = sum(op.type == "invoke" and op.f in JUDGED for op in history)
    used_s = sum(node_cpu_s.values())
    return {"node_cpu_us_per_op": used_s / count * 1e6 if count and node_cpu_s else None}


def _longest_key(history: Sequence[Op]) -> float:
    """How many messages the key with most of them got: a short run never comes near a large limit."""
    sent = Counter(op.value[0][1] for op in history if op.type == "ok" and op.f == "send")
    return float(max(sent.values(), default=0))
