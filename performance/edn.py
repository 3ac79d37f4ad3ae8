"""Lines of a history a second: edn-format, our reader, and our history reader on top of it.

python performance/edn.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import edn_format

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runs import edn
from runs.history import read_history

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "tests" / "fixtures" / "maelstrom-stores" / "valid-3-nodes" / "history.edn"
_REPEATS = 5


def lines_per_cpu_second(work: Callable[[], object], lines: int) -> list[float]:
    """How many lines `work` reads per second of processor time, each of several times, ascending."""
    rates = []
    for _ in range(_REPEATS):
        start = time.process_time()
        work()
        rates.append(lines / (time.process_time() - start))
    return sorted(rates)


def main() -> None:
    """Measure the three readers."""
    lines = HISTORY.read_text().splitlines()
    readers: dict[str, Callable[[], object]] = {
        "edn-format": lambda: [edn_format.loads(line) for line in lines],
        "runs.edn": lambda: [edn.loads(line) for line in lines],
        "runs.history": lambda: read_history(HISTORY),
    }
    for name, work in readers.items():
        rates = lines_per_cpu_second(work, len(lines))
        click.echo(f"{name:14} {rates[len(rates) // 2]:8.0f} ({rates[0]:.0f} to {rates[-1]:.0f})")


if __name__ == "__main__":
    main()
