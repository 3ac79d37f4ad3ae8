"""The small files of a run as rows: of the runs table, the anomalies table and the quarantine.

Pure functions from text to rows. What the files say is known by `runs.facts`.
"""

import json
from collections.abc import Callable
from typing import Any

from analysis.sources import Run
from runs import edn
from runs.facts import EMBEDDED, JEPSEN, UNKNOWN, Results, Settings, read_options

Row = dict[str, Any]


def of_options(run: Run, content: bytes | None) -> tuple[Row, list[Row]]:
    """What test.json says, as columns of the runs table, and rows of the quarantine table.

    What is missing or broken leaves its columns null.
    """
    options, problems = {}, []
    try:
        options = read_options(content) if content else {}
    except ValueError as error:
        assert run.files.options, "its content was read"
        problems = [_problem(run.run_id, run.files.options.name, error)]
    settings, sweep = Settings.of(options), run.sweep
    row = {name: _plain(value) for name, value in vars(settings).items()} | {
        "run_id": run.run_id,
        "source": run.folder,
        "faults": None if settings.faults is None else sorted(settings.faults),
        "node_count": None if settings.nodes is None else len(settings.nodes),
        "options_json": json.dumps(options) if options else None,
        "sweep": sweep.name if sweep else None,
        "cell_json": json.dumps(sweep.cell, sort_keys=True) if sweep else None,
        "repetition": sweep.repetition if sweep else None,
    }
    if not options:  # only the embedded bench writes them
        row["engine"] = EMBEDDED if run.files.options else JEPSEN
    return row, problems


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def of_empty_files(run: Run) -> list[Row]:
    """Rows of the quarantine table for files without content, as a full disk or a kill leaves them."""
    empty = [file.name for file in run.files if not file.size_bytes]
    return [{"run_id": run.run_id, "file": name, "reason": "the file is empty"} for name in empty]


def _problem(run_id: str, file: str, error: Exception) -> Row:
    return {"run_id": run_id, "file": file, "reason": f"cannot be read: {error}"}


def of_results(run_id: str, file: str, content: bytes) -> Row:
    """What the results say of a run.

    Returns:
        run_id; `run` (columns of the runs table), `anomalies` (rows of the anomalies table) and
        `problems` (of the quarantine). A broken file gives a problem and the verdict "unknown".
    """
    try:
        results = Results.read(file, content)
    except ValueError as error:
        problems = [_problem(run_id, file, error)]
        run: Row = {"valid": UNKNOWN}
        return {"run_id": run_id, "run": run, "anomalies": [], "problems": problems}
    run = {
        "valid": results.valid,
        "bad_error_types": _plain(results.bad_error_types),
        "error_types": _plain(results.error_types),
        "network_json": json.dumps(results.net) if results.net else None,
    }
    write = json.dumps if file.endswith(".json") else edn.dumps
    return {"run_id": run_id, "run": run, "anomalies": anomalies(results, write), "problems": []}


def anomalies(results: Results, write: Callable[[Any], str]) -> list[Row]:
    """Rows of the anomalies table: one for each instance, which `write` makes a text."""
    return [
        {
            "type": each.type,
            "invalidating": each.invalidating,
            "count": len(each.instances) if each.count is None else each.count,
            "number": number,
            "key": key,
            "instance": write(instance),
        }
        for each in results.anomalies()
        for number, (key, instance) in enumerate(each.instances)
    ]
