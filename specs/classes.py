"""Java starts TLC in three quarters of the CPU time with an archive of the classes that TLC loads.

`python -m specs.classes` makes the archive in the Python environment: 10 MB, a few seconds. `specs.tlc` uses it
where it is. `make setup` makes it where Java is.

This is Java's class data sharing (JEP 350), as in `analysis.classes`.
"""

import os
import shlex
import sys

from specs import tlc
from specs.manifest import load

LOADS_MOST = "Prefetch/progress"  # liveness needs most classes, and this model has fewest states


def main() -> None:
    """Check a small model, and keep the classes that it needed."""
    tlc.CLASSES.unlink(missing_ok=True)
    [small] = [each for each in load().configurations if each.title == LOADS_MOST]
    options = (*tlc.QUIET_JAVA, f"-XX:ArchiveClassesAtExit={tlc.CLASSES}")
    os.environ["JDK_JAVA_OPTIONS"] = shlex.join(options)  # of every Java that this process starts
    said, _ = tlc.run(small.module, small.config_text())
    if not tlc.CLASSES.exists():
        sys.exit(f"Java wrote no archive: {tlc.CLASSES}\n{said}")
    sys.stdout.write(f"{tlc.CLASSES}: {tlc.CLASSES.stat().st_size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main()
