"""The real node with small segments, runs and pages: a short test makes it compact, and merge files."""

import sys
from dataclasses import replace

from leaderless.runtime.main import run
from leaderless.runtime.settings import parse

if __name__ == "__main__":
    settings = parse(sys.argv[1:])
    limits = replace(
        settings.options.limits,
        seal_entries=4,
        segments_per_run=4,
        page_children=2,
        memory_bytes=1 << 12,
    )
    sys.exit(run(settings._replace(options=settings.options._replace(limits=limits))))
