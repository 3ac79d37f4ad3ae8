"""What the small files of a run say of it: its row of the runs table, and its anomalies.

Pure functions from text to rows. Small they are as a rule; the results of a huge broken run are not.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from analysis.sources import Run
from runs import edn

DEFAULT_STRATEGY = "leaderless"  # of this repository's node, when its arguments name none
NODE_SCRIPTS = ("run.sh", "node.py")

Row = dict[str, Any]


def of_options(run: Run, text: str | None) -> tuple[Row, list[Row]]:
    """What test.json says, as columns of the runs table, and rows of the quarantine table.

    What is missing or broken leaves its columns null.
    """
    options, problems = _json_object(run, text)
    sweep = run.sweep
    return {
        "run_id": run.run_id,
        "source": run.folder,
        "engine": _of_kind(options.get("engine"), str) or run.engine,
        "options_json": json.dumps(options) if options else None,
        "sweep": sweep.name if sweep else None,
        "cell_json": json.dumps(sweep.cell, sort_keys=True) if sweep else None,
        "repetition": sweep.repetition if sweep else None,
        **_settings(options),
    }, problems


def of_empty_files(run: Run) -> list[Row]:
    """Rows of the quarantine table for files without content, as a full disk or a kill leaves them."""
    empty = [file.name for file in run.files if not file.size_bytes]
    return [{"run_id": run.run_id, "file": name, "reason": "the file is empty"} for name in empty]


def _json_object(run: Run, text: str | None) -> tuple[Mapping[str, Any], list[Row]]:
    try:
        loaded = json.loads(text) if text is not None else {}
    except ValueError as error:
        assert run.options
        return {}, [_problem(run.run_id, run.options.name, error)]
    return (loaded if isinstance(loaded, dict) else {}), []


def _problem(run_id: str, file: str, error: Exception) -> Row:
    return {"run_id": run_id, "file": file, "reason": f"cannot be read: {error}"}


def _settings(options: Mapping[str, Any]) -> Row:
    nodes, nemesis = options.get("nodes"), options.get("nemesis")
    return {
        "workload": _of_kind(options.get("workload"), str),
        "started": _of_kind(options.get("started"), str),
        "strategy": strategy(options),
        "faults": sorted(map(str, nemesis)) if isinstance(nemesis, list) else None,
        "nodes": list(map(str, nodes)) if isinstance(nodes, list) else None,
        "node_count": len(nodes) if isinstance(nodes, list) else None,
        "concurrency": _of_kind(options.get("concurrency"), int),
        "rate_hz": _of_kind(options.get("rate"), float),
        "time_limit_s": _of_kind(options.get("time_limit_s"), float),
        "recovery_time_s": _of_kind(options.get("recovery_time_s"), float),
        "latency_ms": _of_kind(options.get("latency_ms"), float),
        "history_origin_ns": _of_kind(options.get("history_origin_ns"), int),
    }


def strategy(options: Mapping[str, Any]) -> str | None:
    """The strategy that the node's arguments name, or its default; None for another program."""
    arguments = options.get("args")
    words = [str(word) for word in arguments] if isinstance(arguments, list) else []
    for word, following in pairwise([*words, ""]):
        if word == "--strategy":
            return following or None
        if word.startswith("--strategy="):
            return word.partition("=")[2]
    is_ours = str(options.get("bin", "")).rpartition("/")[2] in NODE_SCRIPTS
    return DEFAULT_STRATEGY if is_ours else None


def _of_kind(value: Any, kind: type[str] | type[int] | type[float]) -> Any:
    """The value as `kind`, or None if it is something else."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if isinstance(value, kind) else None


def of_results(run_id: str, file: str, content: bytes) -> Row:
    """What results.edn (or results.json) says of a run.

    Returns:
        run_id; `run` (columns of the runs table), `anomalies` (rows of the anomalies table) and
        `problems` (of the quarantine). A broken file gives a problem and the verdict "unknown".
    """
    try:
        text = content.decode()
        results = json.loads(text) if file.endswith(".json") else edn.loads(text)
    except (ValueError, RecursionError) as error:
        nothing = {"valid": "unknown"}
        return _facts(run_id, nothing, problems=[_problem(run_id, file, error)])
    results = results if isinstance(results, dict) else {}
    workload = results.get("workload")
    workload = workload if isinstance(workload, dict) else {}
    facts = {
        "valid": verdict(results.get("valid?")),
        "bad_error_types": _words(workload.get("bad-error-types")),
        "error_types": _words(workload.get("error-types")),
        "network_json": json.dumps(results["net"]) if "net" in results else None,
    }
    write = json.dumps if file.endswith(".json") else edn.dumps
    return _facts(run_id, facts, anomalies=list(anomalies(workload, write)))


def _facts(run_id: str, run: Row, **rows: list[Row]) -> Row:
    return {"run_id": run_id, "run": run, "anomalies": [], "problems": []} | rows


def verdict(valid: Any) -> str:
    """`:valid?` as a word: true, false, or unknown for anything else."""
    return {True: "true", False: "false"}.get(valid, "unknown") if valid is not None else "unknown"


def _words(value: Any) -> list[str] | None:
    return [str(word) for word in value] if isinstance(value, list | tuple) else None


def anomalies(workload: Mapping[str, Any], write: Any) -> Iterator[Row]:
    """Rows of the anomalies table from the `:workload` map of the results.

    An error is `{:count n, :errs (instance ...)}`, of which the checker may have kept fewer instances
    than it counted; `unseen` is one map, with its messages by key.
    """
    invalidating = set(_words(workload.get("bad-error-types")) or ())
    for name in _words(workload.get("error-types")) or ():
        error = workload.get(name)
        instances, count = _instances(error)
        for number, (key, instance) in enumerate(instances):
            yield {
                "type": name,
                "invalidating": name in invalidating,
                "count": count,
                "number": number,
                "key": key,
                "instance": write(instance),
            }


def _instances(error: Any) -> tuple[list[tuple[str | None, Any]], int]:
    """The instances that an error names, each with its key, and how many were counted."""
    if isinstance(error, dict) and isinstance(error.get("errs"), list | tuple):
        listed = error["errs"]
        counted = error.get("count")
        count = counted if isinstance(counted, int) else len(listed)
        return [(_key(instance), instance) for instance in listed], count
    if isinstance(error, dict) and isinstance(error.get("unseen"), dict):
        by_key = error["unseen"]
        count = sum(number for number in by_key.values() if isinstance(number, int))
        return [(str(key), _of_key(error, key)) for key in by_key], count
    return [(None, error)], 1


def _of_key(error: Mapping[Any, Any], key: Any) -> dict[Any, Any]:
    """The part of an error about one key: of each map by key in it, that entry."""
    return {
        name: {key: value[key]} if isinstance(value, dict) and key in value else value
        for name, value in error.items()
    }


def _key(instance: Any) -> str | None:
    key = instance.get("key") if isinstance(instance, dict) else None
    return None if key is None else str(key)
