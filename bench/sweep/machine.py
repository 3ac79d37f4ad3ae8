"""The machine and the code of a sweep, for readers of its figures: `machine.json`."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from runs.store import utc_now

FILE_NAME = "machine.json"


def describe() -> dict[str, Any]:
    """The command, the time, the machine and its load, the commit of the code."""
    return {
        "command": " ".join(["./maelstrom", *sys.argv[1:]]),
        "started": utc_now().isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "commit": _commit(),
    }


def note(folder: Path) -> None:
    """Write the file once; a sweep that goes on leaves it as it is."""
    file = folder / FILE_NAME
    if not file.exists():
        file.write_text(json.dumps(describe(), indent=2) + "\n")


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit() -> str:
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git
        return "unknown"
    return described.stdout.strip() or "unknown"
