#!/usr/bin/env python3
"""The real node with other numbers: the first argument is JSON, as `performance.ablated.varied` takes them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from leaderless.runtime.lean import import_anyio


def main() -> int:
    changes, *options = sys.argv[1:]
    import_anyio(options)

    import orjson

    from leaderless.runtime.main import run
    from leaderless.runtime.settings import parse
    from performance.ablated import varied

    settings = parse(options)
    return run(settings._replace(options=varied(settings.options, orjson.loads(changes))))


sys.exit(main())
