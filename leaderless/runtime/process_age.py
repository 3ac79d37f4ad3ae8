"""How long this process has lived: so long may lie in the pipe what it reads first."""

import os
import time


def process_age_s() -> float:
    """How long this process has lived, in seconds; 0 where the system does not say."""
    try:
        with open("/proc/self/stat") as file:  # noqa: PTH123 - pathlib takes part of a start
            fields = file.read().rpartition(")")[2].split()
        started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # [proc_pid_stat(5)]
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)
