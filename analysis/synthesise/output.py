"""The files of a synthetic history."""

import json
from pathlib import Path

from analysis.errors import AnalysisError
from analysis.rows import halves
from analysis.synthesise.synthesis import Synthetic
from runs.history import write_edn, write_jsonl

PLANTED = "planted.json"
_MOST_LINES = 2_000_000  # that the driver can hold as a text


def write(synthetic: Synthetic, path: Path) -> Path:
    """Write the history to `path`, and what was planted beside it; returns the latter's path.

    A name that ends in .jsonl or .edn is a history in one file, any other a folder of Parquet.

    Raises:
        AnalysisError: the history is too long for one file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".jsonl", ".edn"):
        planted = path.with_name(f"{path.stem}.{PLANTED}")
        _write_file(synthetic, path)
    else:
        planted = path.with_name(f"{path.name}.{PLANTED}")
        synthetic.operations.write.mode("overwrite").parquet(str(path))
    planted.write_text(json.dumps(synthetic.planted, indent=2) + "\n")
    return planted


def _write_file(synthetic: Synthetic, path: Path) -> None:
    rows = synthetic.operations.limit(_MOST_LINES // 2 + 1).collect()
    if 2 * len(rows) > _MOST_LINES:
        raise AnalysisError(f"{path} would be too long: give a folder, for Parquet")
    lines = sorted((line for row in rows for line in halves(row)), key=lambda line: line.index)
    for index, line in enumerate(lines):
        line.index = index
    if path.suffix == ".edn":
        with path.open("w") as text:
            write_edn(lines, text)
    else:
        with path.open("wb") as file:
            write_jsonl(lines, file)
