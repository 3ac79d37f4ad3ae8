"""What a run's small files say of it: one row of the runs table."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.formats import edn
from analysis.sources import Run

Problem = dict[str, Any]  # a row of the quarantine table


def run_facts(run: Run) -> tuple[dict[str, Any], list[Problem]]:
    """The row of the runs table, and what could not be read (a half-written file, say).

    A file that is missing or broken leaves its columns null; without results, `valid` is "unknown".
    """
    problems: list[Problem] = []
    results = _load(run.results, problems)
    options = _load(run.options, problems)
    workload = _map(results, "workload")
    return {
        "source": str(run.folder),
        "engine": run.engine,
        "valid": verdict(results.get("valid?")),
        "bad_error_types": _words(workload.get("bad-error-types")),
        "error_types": _words(workload.get("error-types")),
        "network_json": json.dumps(results["net"]) if "net" in results else None,
        "options_json": json.dumps(options) if options else None,
        **_settings(options),
    }, problems


def _load(file: Path | None, problems: list[Problem]) -> Mapping[str, Any]:
    if file is None:
        return {}
    try:
        text = file.read_text()
        loaded = edn.loads(text) if file.suffix == ".edn" else json.loads(text)
    except ValueError as error:
        problems.append({"file": file.name, "reason": f"cannot be read: {error}"})
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _map(results: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = results.get(name)
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> list[str] | None:
    return [str(word) for word in value] if isinstance(value, list) else None


def verdict(valid: Any) -> str:
    """`:valid?` as a word: true, false, or unknown for anything else."""
    return {True: "true", False: "false"}.get(valid, "unknown") if valid is not None else "unknown"


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that come from test.json."""
    nodes = options.get("nodes")
    return {
        "workload": _of_kind(options.get("workload"), str),
        "started": _of_kind(options.get("started"), str),
        "node_count": len(nodes) if isinstance(nodes, list) else None,
        "concurrency": _of_kind(options.get("concurrency"), int),
        "rate_hz": _of_kind(options.get("rate"), float),
        "time_limit_s": _of_kind(options.get("time_limit_s"), float),
        "latency_ms": _of_kind(options.get("latency_ms"), float),
        "history_origin_ns": _of_kind(options.get("history_origin_ns"), int),
    }


def _of_kind(value: Any, kind: type[str] | type[int] | type[float]) -> Any:
    """The value as `kind`, or None if it is something else."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if isinstance(value, kind) else None
