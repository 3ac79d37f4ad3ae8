"""The node's entry point; `./run.sh --help` tells its options."""

import sys

from leaderless.runtime.lean import import_anyio

if __name__ == "__main__":
    import_anyio(sys.argv[1:])
    from leaderless.runtime.main import main

    sys.exit(main())
