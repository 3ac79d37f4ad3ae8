"""Steps of a program in processes of their own, because memory and start-up are those of a process."""

import json
import subprocess
import sys

Figures = dict[str, float]


def figures_of(module: str, *arguments: object, timeout_s: float | None = None) -> Figures:
    """What `python -m module argument ...` prints: figures, as JSON.

    Raises `SubprocessError` if it fails, or takes longer than `timeout_s` seconds.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=timeout_s)
    figures: Figures = json.loads(done.stdout)
    return figures
