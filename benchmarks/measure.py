"""One run of the bench as a process of its own: started, bounded in time, reduced to its key figures."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.sweep import figures

ROOT = Path(__file__).resolve().parents[1]
_EXPECTED = (
    "valid",
    "strict_valid",
    "ok_fraction",
)  # 1.0 when all is well, None when not asked for
_TERM_GRACE_S = 30.0
_FIXED_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Job:
    """A run to make. `case` is the row (a configuration or a point of a slope); `repetition` counts from 1."""

    case: str
    strategy: str
    repetition: int
    flags: tuple[str, ...]
    time_limit_s: int
    recovery_s: float = 1.0
    strict: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells runs of one series apart."""
        return self.case, self.strategy, self.repetition

    @property
    def rate(self) -> float:
        """Operations a second that the bench is asked for."""
        return float(self.flags[self.flags.index("--rate") + 1])

    @property
    def limit_s(self) -> float:
        """After so many seconds the run is given up: far more than an honest one takes, so that a strategy
        that collapses costs minutes and not the night.
        """
        return 3 * self.time_limit_s + self.recovery_s + _FIXED_LIMIT_S


def command(job: Job, program: Path, store: Path) -> list[str]:
    """The bench's command line. The seed leaves the strategy out: all strategies of a repetition get the
    same operations, delays and faults.
    """
    return [
        *(str(ROOT / "maelstrom"), "test", "-w", "kafka", "--engine", "embedded"),
        *("--bin", str(program), *job.flags),
        *("--time-limit", str(job.time_limit_s), "--recovery-time", f"{job.recovery_s:g}"),
        *("--seed", f"{job.case}/{job.repetition}", "--store", str(store)),
        *("--", "--strategy", job.strategy),
    ]


def measure(job: Job, program: Path, kept: Path) -> dict[str, Any]:
    """Make the run; return its record: the job, seconds it took, figures, or an `error`.

    Folders of runs that were not valid, or in which a send or poll did not succeed, stay in `kept` as evidence;
    all others are deleted, for a series would fill the disk.
    """
    started = time.monotonic()
    record: dict[str, Any] = asdict(job) | {"error": None, "figures": {}, "anomalies": []}
    with tempfile.TemporaryDirectory(prefix="leaderless-bench-") as store:
        error = _run(command(job, program, Path(store)), job.limit_s)
        record["wall_s"] = round(time.monotonic() - started, 1)
        run_dir = (Path(store) / "latest").resolve()
        try:
            record["figures"], record["anomalies"] = figures.of_run(
                run_dir, time_limit_s=job.time_limit_s, strict=job.strict
            )
        except (OSError, ValueError, KeyError) as broken:
            error = error or f"the run left no figures ({broken!r})"
        record["error"] = error
        if error or _is_remarkable(record["figures"]):
            record["kept"] = _keep(run_dir, kept / f"{job.case}-{job.strategy}-{job.repetition}")
    return record


def _is_remarkable(found: figures.Figures) -> bool:
    return any(found.get(name, 0.0) not in (1.0, None) for name in _EXPECTED)


def _run(line: list[str], limit_s: float) -> str | None:
    """Run the bench quietly. Returns what went wrong with the run itself; an invalid verdict is no error."""
    process = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        _, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _stop(process)
        return f"given up after {limit_s:.0f} s"
    except BaseException:  # Ctrl-C: the bench, in a session of its own, has to be told
        _stop(process)
        raise
    if process.returncode in (0, 1, 2):
        return None
    return f"exit status {process.returncode}: {stderr.strip()[-500:]}"


def _stop(process: subprocess.Popen[str]) -> None:
    """SIGTERM, on which the bench stops its nodes and judges what it has; in the end SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_TERM_GRACE_S)
            return


def _keep(run_dir: Path, place: Path) -> str | None:
    if not (run_dir / "test.json").exists():
        return None
    shutil.copytree(run_dir, place, dirs_exist_ok=True)
    return str(place)
