"""The real node with small segments, runs and pages: a short test makes it compact, and merge files."""

import sys
from dataclasses import replace

from leaderless.core.shape import Shape
from leaderless.runtime.command_line import parse_options
from leaderless.runtime.main import run

if __name__ == "__main__":
    settings = parse_options(sys.argv[1:])
    limits = replace(settings.options.limits, memory_bytes=1 << 12)
    shape = Shape(seal_entries=4, segments_per_run=4, page_children=2)
    options = settings.options._replace(limits=limits, shape=shape)
    sys.exit(run(settings._replace(options=options)))
